"""What tokens cost, from the price list that comes with pydantic-ai. A model that is not on it costs nothing here."""


def price(model: str, input_tokens: int, output_tokens: int) -> float:
    """In US dollars; `model` is like "openai:gpt-5-mini", or ":gpt-5-mini" when only its name tells the provider."""
    from genai_prices import Usage, calc_price

    provider, _, name = model.partition(":")
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return float(calc_price(usage, name, provider_id=provider or None).total_price)
    except LookupError:
        return 0.0
