"""XLNet language models: network, reader, partial scoring, files, packs."""
