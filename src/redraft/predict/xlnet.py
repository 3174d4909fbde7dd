"""XLNet as a token classifier, with the names of ``transformers.XLNetForTokenClassification``."""

from torch import Tensor, nn

from redraft.models.xlnet.network import XlnetConfig, XlnetTransformer, initialise

__all__ = ["XlnetConfig", "XlnetTokenClassifier"]


class XlnetTokenClassifier(nn.Module):
    """From pieces to a score for every label."""

    def __init__(self, config: XlnetConfig, num_labels: int):
        super().__init__()
        self.config = config
        self.transformer = XlnetTransformer(config)
        self.classifier = nn.Linear(config.d_model, num_labels)
        self.apply(initialise)

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """Ids [rows, time] and which of them are real to logits [rows, time, labels]."""
        result: Tensor = self.classifier(self.transformer(ids, real))
        return result
