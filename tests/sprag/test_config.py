"""Parameters: published values, what follows from the budget, and what is refused."""

from dataclasses import fields, replace

import pytest

from llama_index.ragkit.errors import ConfigurationError
from llama_index.sprag.config import PUBLISHED, ContextConfig, PublishedSegments, SegmentConfig, published_config


@pytest.mark.parametrize(
    ("preset", "numbers"),
    [  # max_length, overall, minimum value, penalty, extension, decay, documents
        ("balanced", (15, 30, 0.5, 0.18, 5, 30, 10)),
        ("precision", (15, 30, 0.7, 0.2, 5, 30, 10)),
        ("find_all", (40, 200, 0.4, 0.18, 0, 200, 200)),
        ("article", (10, 20, 0.7, 0.2, 5, 20, 7)),
    ],
)
def test_the_published_presets(preset, numbers):
    config = published_config(preset)
    assert numbers == (
        config.max_length,
        config.overall_max_length,
        config.minimum_value,
        config.irrelevant_chunk_penalty,
        config.published.overall_max_length_extension,
        config.decay_rate,
        config.published.top_k_for_document_selection,
    )
    assert config.length_unit == "chunks"
    assert not config.fill
    assert config.neighbor_relevance == 0
    assert config.published.reference_length == 700
    assert config is not published_config("balanced") or preset == "balanced"


def test_the_first_generation_knew_neither_relevance_nor_lengths():
    config = published_config("first_generation")
    assert config == published_config("article")
    assert (config.published.length_adjustment, config.calibration) == ("none", "rank")


def test_what_is_left_out_of_a_preset_is_that_of_the_preset():
    assert published_config() == PUBLISHED["balanced"]
    assert published_config("precision", max_length=3) == replace(PUBLISHED["precision"], max_length=3)
    with pytest.raises(ConfigurationError, match=r"'maxlength'.*overall_max_length"):
        published_config("precision", maxlength=3)
    with pytest.raises(ConfigurationError, match="'balanced', 'precision', 'find_all', 'article'"):
        published_config("exact")


def test_the_worth_of_neighbors_goes_down_with_their_length_unless_it_is_given():
    config = SegmentConfig()
    assert [config.neighbor_relevance_for(length) for length in (1, 256, 1024)] == pytest.approx([0.2, 0.2, 0.05])
    of_characters = replace(config, length_unit="chunks")
    assert [of_characters.neighbor_relevance_for(length) for length in (1024, 4096)] == pytest.approx([0.2, 0.05])
    assert replace(config, neighbor_relevance=0.3).neighbor_relevance_for(1024) == 0.3


def test_length_and_decay_follow_from_the_budget_unless_they_are_given():
    config = SegmentConfig(overall_max_length=2000)
    assert config.segment_length == 1000
    assert config.decay_rate_for(100) == pytest.approx(12)
    assert replace(config, length_unit="chunks").decay_rate_for(100) == pytest.approx(1200)
    assert config.decay_rate_for(10_000) == 1
    assert SegmentConfig(overall_max_length=1).segment_length == 1
    assert SegmentConfig(max_length=7, decay_rate=3.5).segment_length == 7
    assert SegmentConfig(max_length=7, decay_rate=3.5).decay_rate_for(100) == 3.5


@pytest.mark.parametrize(
    "wrong",
    [
        {"overall_max_length": 0},
        {"overall_max_length": 10.5},
        {"max_length": 0},
        {"minimum_value": -0.1},
        {"minimum_value": float("nan")},
        {"irrelevant_chunk_penalty": 1.5},
        {"neighbor_relevance": 1.1},
        {"decay_rate": 0},
        {"length_unit": "words"},
        {"published": {"reference_length": 1}},
        {"calibration": "gamma"},
        {"calibration": 0.8},
        {"selection": "best"},
    ],
)
def test_values_that_cannot_be_are_refused_by_name(wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        SegmentConfig(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"overall_max_length_extension": -1},
        {"top_k_for_document_selection": 0},
        {"length_adjustment": "log"},
        {"reference_length": 0},
    ],
)
def test_published_values_that_cannot_be_are_refused_by_name(wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        PublishedSegments(**wrong)


@pytest.mark.parametrize("name", [field.name for field in fields(ContextConfig) if field.type in (int, "int")])
def test_a_part_of_the_context_may_be_left_out_but_not_be_negative(name):
    assert getattr(ContextConfig(**{name: 0}), name) == 0
    with pytest.raises(ConfigurationError, match=name):
        ContextConfig(**{name: -1})
