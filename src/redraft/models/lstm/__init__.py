"""The LSTM language model: network, reader, files."""
