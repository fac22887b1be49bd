"""Prices: costs to the cent against sums made by hand, the rule of prefixes, and files that are wrong."""

from pathlib import Path

import pytest

from finskillbench.errors import InputError
from finskillbench.harness.model import Usage
from finskillbench.harness.providers.prices import Price, PriceTable


def test_cost_of_every_kind_of_token_by_hand():
    price = Price(input=3.0, cached_input=0.3, cache_write=3.75, output=15.0)
    usage = Usage(input_tokens=1_000_000, cached_tokens=600_000, cache_write_tokens=100_000, output_tokens=40_000)
    # 300,000 fresh at $3.00, 600,000 cached at $0.30, 100,000 written at $3.75, 40,000 out at $15.00
    assert price.cost(usage) == pytest.approx(0.90 + 0.18 + 0.375 + 0.60, abs=1e-12)


def test_reasoning_is_billed_once():
    price = Price(1.0, 1.0, 1.0, 10.0)
    assert price.cost(Usage(output_tokens=500, reasoning_tokens=400)) == price.cost(Usage(output_tokens=500))


@pytest.mark.parametrize(
    ("model", "dollars"),
    # A night's use: 5,000,000 in, of which 2,000,000 cached, and 400,000 out.
    [
        ("openai/gpt-5", 3.75 + 0.25 + 4.00),
        ("anthropic/claude-sonnet-4-5", 9.00 + 0.60 + 6.00),
        ("google/gemini-2.5-pro", 3.75 + 0.25 + 4.00),
        ("grok/grok-4.3", 3.75 + 0.40 + 1.00),
        ("ollama/llama3.3:70b", 0.0),
        ("vllm/Qwen/Qwen3-8B", 0.0),
        ("llama-cpp-python/tiny", 0.0),
        ("baseline/reference", 0.0),
    ],
)
def test_catalog_prices_to_the_cent(model: str, dollars: float):
    price = PriceTable.load().price_of(model)
    assert price is not None
    usage = Usage(input_tokens=5_000_000, cached_tokens=2_000_000, output_tokens=400_000)
    assert round(price.cost(usage), 2) == round(dollars, 2)


def test_exact_name_before_longest_prefix_before_shorter(tmp_path: Path):
    file = tmp_path / "prices.json"
    file.write_text(
        '{"lab/*": {"input": 1, "output": 1}, "lab/big*": {"input": 2, "output": 2},'
        ' "lab/big-1": {"input": 3, "output": 3}}'
    )
    table = PriceTable.load(file)
    found = {name: table.price_of(f"lab/{name}") for name in ("small", "big-2", "big-1", "big-10")}
    assert {name: price and price.input for name, price in found.items()} == {
        "small": 1.0,
        "big-2": 2.0,
        "big-1": 3.0,
        "big-10": 2.0,
    }


@pytest.mark.parametrize("model", ["openai/gpt-5.9", "openai/gpt-5-pro", "openai/gpt-50", "elsewhere/gpt-5"])
def test_a_name_that_only_resembles_a_priced_one_has_no_price(model: str):
    assert PriceTable.load().price_of(model) is None


def test_a_dated_snapshot_costs_what_its_model_costs():
    table = PriceTable.load()
    assert table.price_of("openai/gpt-5-2025-08-07") == table.price_of("openai/gpt-5")
    assert table.price_of("anthropic/claude-opus-4-5-20251101") == table.price_of("anthropic/claude-opus-4-5")


def test_own_file_overrides_one_entry_and_leaves_the_rest(tmp_path: Path):
    file = tmp_path / "prices.json"
    file.write_text('{"prices": {"openai/gpt-5": {"input": 7, "output": 9}}}')
    table = PriceTable.load(file)
    assert table.price_of("openai/gpt-5") == Price(7.0, 7.0, 7.0, 9.0)
    assert table.price_of("openai/gpt-5-mini") == PriceTable.load().price_of("openai/gpt-5-mini")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1]", "must be a JSON object"),
        ("{", "not valid JSON"),
        ('{"prices": 3}', "prices must be a JSON object"),
        ('{"m": 3}', "m must be a JSON object"),
        ('{"m": {"input": 1}}', "m.output is missing"),
        ('{"m": {"input": 1, "output": -2}}', "m.output is -2"),
        ('{"m": {"input": "1", "output": 2}}', "m.input is '1'"),
        ('{"m": {"input": true, "output": 2}}', "m.input is True"),
        ('{"m": {"input": 1, "output": 2, "cache": 1}}', "m.cache is unknown"),
    ],
)
def test_bad_files_are_refused_by_file_and_field(tmp_path: Path, text: str, problem: str):
    file = tmp_path / "prices.json"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        PriceTable.load(file)
    assert str(file) in str(caught.value)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_absent_file_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"absent\.json: cannot be read"):
        PriceTable.load(tmp_path / "absent.json")
