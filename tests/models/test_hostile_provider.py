"""Every response of a hostile provider is used, asked for again or refused; where its cost is not known, the worst case
is counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from retrial.chat import Message, Request
from retrial.errors import ModelError
from retrial.models.endpoints import Endpoint
from retrial.models.openai import OpenAIModel
from retrial.models.prices import Price
from retrial.models.retry import Patience
from tests.support.controls import Losing
from tests.support.hostile_provider import CASES, ESCAPE, KEY, Case, HostileProvider

TRY_SECONDS = 2.0


@pytest.fixture
def model() -> Iterator[OpenAIModel]:
    with HostileProvider() as provider:
        endpoint = Endpoint(title="the test's server", base_url=provider.url, model="m-1", key=KEY)
        patience = Patience(base_delay=0.001, try_seconds=TRY_SECONDS)
        price = Price(prompt=1.0, completion=2.0)
        with closing(OpenAIModel(name="m-1", endpoint=endpoint, price=price, patience=patience)) as opened:
            yield opened


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES)
def test_a_response_is_used_or_refused_and_its_cost_never_lost(model: OpenAIModel, name: str, case: Case) -> None:
    lost: list[bool] = []
    asked = Message(role="user", content=f"Write case_{name}.py.")
    request = Request(messages=(asked,), timeout=60.0, control=Losing(lost.append))
    if case.outcome == "not measured":
        with pytest.raises(ModelError) as caught:
            model.complete(request)
        assert [text for text in (KEY, ESCAPE, "\n") if text in str(caught.value)] == []
        assert lost == [False] * case.billed
        return
    reply = model.complete(request)
    assert lost == [True] * (case.recovers and case.billed)
    assert (reply.usage.cost is None) == (case.billed and not case.recovers)
    assert ("return a + b" in reply.text) == (case.outcome == "resolved")
