"""The encoder-decoder learns what it is shown: to copy and to reverse sequences that it has not seen."""

import pytest
import torch

from sktransformer.nn import EncoderDecoderForSeq2SeqLM, TransformerConfig

PAD, END, FIRST, N_SYMBOLS = 0, 2, 3, 12


def sequences(n, generator, shortest=3, longest=8):
    """Rows of symbols, each with an end token, padded; and where they are not."""
    lengths = torch.randint(shortest, longest + 1, (n, 1), generator=generator)
    places = torch.arange(longest + 1)
    symbols = torch.randint(FIRST, FIRST + N_SYMBOLS, (n, longest + 1), generator=generator)
    rows = symbols.masked_fill(places == lengths, END).masked_fill(places > lengths, PAD)
    return rows, (places <= lengths).long()


def turned(rows):
    """The same rows with their symbols in the opposite order, and the end token at the end."""
    lengths = (rows == END).long().argmax(1, keepdim=True)
    places = torch.arange(rows.shape[1])
    return torch.where(places < lengths, rows.gather(1, (lengths - 1 - places).clamp(min=0)), rows)


@pytest.mark.parametrize("task", ["copy", "reversal"])
def test_unseen_sequences_come_out_right(task):
    torch.manual_seed(0)
    config = TransformerConfig(
        architecture="encoder-decoder",
        vocab_size=FIRST + N_SYMBOLS,
        hidden_size=64,
        num_layers=1,
        num_attention_heads=4,
        intermediate_size=128,
        dropout=0.0,
        attention_dropout=0.0,
    )
    model = EncoderDecoderForSeq2SeqLM(config)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    generator = torch.Generator().manual_seed(0)
    n_steps = 300
    for step in range(n_steps):
        optimizer.param_groups[0]["lr"] = 3e-3 * min(1.0, (step + 1) / 30, (n_steps - step) / 150)
        source, mask = sequences(64, generator)
        target = source if task == "copy" else turned(source)
        loss = model(source, mask, labels=target.masked_fill(target == PAD, -100)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    source, mask = sequences(100, torch.Generator().manual_seed(1))
    expected = source if task == "copy" else turned(source)
    written = model.generate(source, attention_mask=mask, max_new_tokens=9, do_sample=False)[:, 1:]
    assert torch.equal(written, expected[:, : written.shape[1]])
