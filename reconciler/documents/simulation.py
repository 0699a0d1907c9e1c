"""The situation of a simulation as a part of the backtest document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.documents.bucket_names import bucket_from_tags, bucket_tags
from reconciler.documents.reading import items_from_json, number_from_json, value_from_json
from reconciler.formats import Json, entity_from_json, entity_to_json, value_to_json
from reconciler.model import (
    BrokerLoad,
    BrokerRates,
    BrokerShare,
    LandedTraffic,
    SimulatedLimit,
    Simulation,
    StandingVerdict,
    TrafficSpread,
    Verdict,
)


def simulation_to_json(simulation: Simulation) -> dict[str, Json]:
    """``simulation`` of the document. Rates and limits are in the unit of their key."""
    return {
        "title": simulation.title,
        "assumptions": list(simulation.assumptions),
        "brokers_before": list(simulation.brokers_before),
        "brokers_after": list(simulation.brokers_after),
        "factor": simulation.factor,
        "spread": simulation.spread.value,
        "leaders_file": simulation.leaders_file,
        "shares": [{"from": share.source, "to": share.target, "share": share.share} for share in simulation.shares],
        "stands_for": simulation.stands_for,
        "recorded_brokers": list(simulation.recorded_brokers),
        "recorded_gaps": list(simulation.recorded_gaps),
        "limits": [
            {
                "entity": entity_to_json(limit.entity),
                "key": limit.key,
                "limit_before": value_to_json(limit.before),
                "limit_after": value_to_json(limit.after),
                "declared": limit.declared,
            }
            for limit in simulation.limits
        ],
        "loads": [
            {"broker": load.broker, "key": load.key, "rate_before": load.before, "rate_after": load.after}
            for load in simulation.loads
        ],
        "clients": [
            {
                "user": client.user,
                "client_id": client.client_id,
                "ip": client.ip,
                "key": client.key,
                "brokers": [
                    {"broker": rates.broker, "rate_before": rates.before, "rate_after": rates.after} for rates in client.brokers
                ],
            }
            for client in simulation.landed
        ],
        "clients_in_all": simulation.landed_in_all,
        "today": _standing_to_json(simulation.today),
        "at_once": _standing_to_json(simulation.at_once),
        "after_apply": _standing_to_json(simulation.after_apply),
    }


def _standing_to_json(verdicts: Sequence[StandingVerdict]) -> list[Json]:
    return [
        {"bucket": {**bucket_tags(standing.bucket)}, "key": standing.key, "verdict": standing.verdict.value}
        for standing in verdicts
    ]


def simulation_from_json(row: Mapping[str, Any]) -> Simulation:
    """The inverse of ``simulation_to_json``."""
    return Simulation(
        title=row["title"],
        assumptions=tuple(row["assumptions"]),
        brokers_before=tuple(row["brokers_before"]),
        brokers_after=tuple(row["brokers_after"]),
        factor=float(number_from_json(row["factor"], "factor")),
        spread=TrafficSpread(row["spread"]),
        leaders_file=row["leaders_file"],
        shares=tuple(BrokerShare(source=share["from"], target=share["to"], share=share["share"]) for share in row["shares"]),
        stands_for=row["stands_for"],
        recorded_brokers=tuple(row["recorded_brokers"]),
        recorded_gaps=tuple(row["recorded_gaps"]),
        limits=items_from_json(row["limits"], _limit_from_json, "limits"),
        loads=tuple(
            BrokerLoad(broker=load["broker"], key=load["key"], before=load["rate_before"], after=load["rate_after"])
            for load in row["loads"]
        ),
        landed=tuple(_landed_from_json(client) for client in row["clients"]),
        landed_in_all=row["clients_in_all"],
        today=_standing_from_json(row["today"]),
        at_once=_standing_from_json(row["at_once"]),
        after_apply=_standing_from_json(row["after_apply"]),
    )


def _standing_from_json(rows: Sequence[Mapping[str, Any]]) -> tuple[StandingVerdict, ...]:
    return tuple(
        StandingVerdict(bucket=bucket_from_tags(row["bucket"]), key=row["key"], verdict=Verdict(row["verdict"])) for row in rows
    )


def _limit_from_json(row: Mapping[str, Any]) -> SimulatedLimit:
    return SimulatedLimit(
        entity=entity_from_json(row["entity"]),
        key=row["key"],
        before=value_from_json(row["limit_before"], "limit_before"),
        after=value_from_json(row["limit_after"], "limit_after"),
        declared=row["declared"],
    )


def _landed_from_json(row: Mapping[str, Any]) -> LandedTraffic:
    return LandedTraffic(
        user=row["user"],
        client_id=row["client_id"],
        ip=row["ip"],
        key=row["key"],
        brokers=tuple(
            BrokerRates(broker=rates["broker"], before=rates["rate_before"], after=rates["rate_after"])
            for rates in row["brokers"]
        ),
    )
