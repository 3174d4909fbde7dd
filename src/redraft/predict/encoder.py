"""The encoder as a token classifier, with the names of ``transformers.BertForTokenClassification``."""

from torch import Tensor, nn

from redraft.models.encoder import Encoder, EncoderConfig


class EncoderTokenClassifier(nn.Module):
    """From ids of pieces and cases to a score for every label."""

    def __init__(self, config: EncoderConfig, num_labels: int):
        super().__init__()
        self.config = config
        self.bert = Encoder(config)
        self.classifier = nn.Linear(config.hidden_size, num_labels)

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """Ids [rows, time] and which of them are real to logits [rows, time, labels]."""
        result: Tensor = self.classifier(self.bert(ids, real))
        return result
