#!/usr/bin/env python3
"""Counts the records of each page: a program for a job of engine: program with commit: table.

It needs psycopg and kafka-python, with the codecs that producers use: kafka-python[snappy,lz4,zstd]. docs/programs.md explains it.

    pages.py [--from PAGE]     counts pages from that number on
"""
import argparse
import collections
import json
import os
import signal
import sys

import psycopg
from kafka import KafkaConsumer, TopicPartition

FENCED, HELD = "KC001", "KC002"  # the errors of kappactl.advance
ENV = {name.removeprefix("KAPPACTL_"): value for name, value in os.environ.items() if name.startswith("KAPPACTL_")}


def partition(place):
    topic, number = place.rsplit("/", 1)
    return TopicPartition(topic, int(number))


def commit(db, records, first):
    """Writes the results of records and moves the positions over them, in one transaction."""
    counts, upto = collections.Counter(), {}
    for r in records:
        upto[f"{r.topic}/{r.partition}"] = r.offset + 1
        try:
            page = json.loads(r.value)["page"]
        except (TypeError, ValueError, KeyError):
            continue
        if page is not None and page >= first:
            counts[page] += 1
    with db.transaction():
        # Instances write rows of the same page: they take them in one order.
        db.execute(
            f"INSERT INTO {ENV['TABLE']} AS t (page, clicks) "
            "SELECT * FROM unnest(%s::integer[], %s::bigint[]) AS u (page, clicks) ORDER BY page "
            "ON CONFLICT (page) DO UPDATE SET clicks = t.clicks + excluded.clicks",
            (list(counts.keys()), list(counts.values())),
        )
        db.execute(
            f"SELECT {ENV['SCHEMA']}.advance(%s, %s, %s, %s)",
            (ENV["JOB"], int(ENV["VERSION"]), int(ENV["CLAIM"]), json.dumps(upto)),
        )
    return upto


def run(first):
    position = json.loads(ENV["START"])
    ends = json.loads(ENV.get("END") or "{}")
    consumer = KafkaConsumer(
        bootstrap_servers=ENV["BROKERS"].split(","), enable_auto_commit=False, auto_offset_reset="none",
        isolation_level="read_committed",
    )
    consumer.assign([partition(place) for place in position])
    for place, offset in position.items():
        consumer.seek(partition(place), offset)
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    pending = []
    with psycopg.connect(ENV["DSN"], autocommit=True) as db:
        while not stopping and not (ends and all(position[p] >= end for p, end in ends.items())):
            for records in consumer.poll(timeout_ms=50, max_records=max(1, 2000 - len(pending))).values():
                pending += records
            now = pending
            while now:
                try:
                    position |= commit(db, now, first)
                    done = {(r.topic, r.partition, r.offset) for r in now}
                    pending = [r for r in pending if (r.topic, r.partition, r.offset) not in done]
                    break
                except psycopg.Error as e:
                    if e.sqlstate != HELD:
                        raise
                    # Up to the holds for now; what is behind them stays pending.
                    holds = json.loads(e.diag.message_detail)
                    now = [r for r in now if r.offset < holds.get(f"{r.topic}/{r.partition}", r.offset + 1)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--from", dest="first", type=int, default=0)
    try:
        run(parser.parse_args().first)
    except psycopg.Error as e:
        if e.sqlstate != FENCED:
            raise
        print(e, file=sys.stderr)  # not a failure: another process goes on
