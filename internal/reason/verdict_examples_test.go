package reason_test

import (
	"errors"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

func verdictExamples() []example {
	behind := reason.Behind(12345, 90*time.Second)
	return []example{
		{reason.RangesNotSet(), "the replay ranges are not determined yet"},
		{reason.NoOffsets(), "the brokers returned no offsets"},
		{reason.NoPartition(), "the brokers do not know this partition"},
		{reason.BrokersSilent(errors.New("timeout")), "the brokers did not answer: timeout"},
		{reason.EndOutdated(5, 1200), "the end offset that was read (5) is older than the position (1200)"},
		{reason.Paused(), "paused"},
		{reason.Queued(1, 0), "1 of 1 replay slots in use (agent.replays)"},
		{reason.Queued(2, 3), "2 of 2 replay slots in use (agent.replays); 3 ahead in the queue"},
		{reason.NoAgentYet(), "waiting for an agent"},
		{reason.Held(), "held by deploy --until staged; deploy it again without --until to go on"},
		{reason.NoWorkerYet(), "waiting for a worker"},
		{reason.NoWorker(), "no worker reads it"},
		{reason.ReplayStalled(2*time.Minute, 1), "no segment finished for 2m; 1 record unread"},
		{reason.Building(), "the table is being built"},
		{reason.RangeRead(), "the replay range is read"},
		{reason.Replaying(5, 3), "5 records left in the replay range, then 3 newer"},
		{reason.OpenTransaction(1000, 2, time.Minute), "1,000 readable, 2 records held back by an open transaction for 1m"},
		{reason.OpenTransaction(0, 1, 1500*time.Millisecond), "1 record held back by an open transaction for 2s"},
		{reason.Stalled(30*time.Second, behind), "no progress for 30s; 12,345 records, 1m30s behind"},
		{reason.AllRead(), "all records are read"},
		{behind, "12,345 records, 1m30s behind"},
		{reason.BehindAtLeast(1, 250*time.Millisecond), "1 record behind, for at least 250ms"},
		{reason.NotConverging(behind, 12000), "12,345 records, 1m30s behind; 12,000 a minute ago"},
		{reason.LevelWithLive(behind), "level with the live version, which is also behind: 12,345 records, 1m30s behind"},
		{reason.NoPartitions(), "no partition is known"},
		{reason.Holding(3 * time.Second), "within limits; ready in 3s"},
		{reason.WithinLimits(1), "1 partition within limits"},
		{
			reason.DeadLetters(ref(), 30, 1000, 0.03, 0.01),
			"30 of 1,000 records could not be processed (3%, on_error allows 1%): kappactl deadletter list orders v3 shows them",
		},
		{
			reason.MoreDeadLetters(ref(), 30, 1000, 0.03, 0.0001),
			"30 of 1,000 records could not be processed (3%), and only 0.01% in live: kappactl deadletter list orders v3 " +
				"shows them",
		},
		{reason.NotDropped(errors.New("a view reads it")), "waiting for the table to be dropped: a view reads it"},
		{reason.VersionEnded(), "the version has ended"},
		{reason.Adopted(), "adopted: kappactl does not write this relation"},
		{reason.NoSample(), "no sample yet"},
		{reason.SampleOld(5 * time.Second), "the last sample is older than 5s: no agent is running this version"},
	}
}

func troubleExamples() []example {
	return []example{
		{
			reason.CommitRefused("a1", "orders/2", "not today"),
			"agent a1 cannot commit results of orders/2: not today; tried again until it succeeds",
		},
		{reason.CommitFails("a1", "disk full"), "agent a1 cannot commit results: disk full; tried again until it succeeds"},
		{reason.FetchFails("a1", "orders/2", "EOF"), "agent a1 cannot read orders/2: EOF; tried again until it succeeds"},
		{reason.ClaimFails("a1", "timeout"), "agent a1 cannot claim partitions or segments: timeout; tried again until it succeeds"},
		{reason.SegmentFails("a1", "disk full"), "agent a1 cannot replay a segment: disk full; tried again until it succeeds"},
		{reason.StartFails("a1", "no space"), "agent a1 cannot start to work on the version: no space; tried again until it succeeds"},
		{
			reason.ProgramFails("a1", 0, "exit code 3", "no such host"),
			"instance 0 of the program ended with exit code 3 on agent a1: no such host; it is started again after a pause",
		},
		{
			reason.NotAllowed("a1", "/opt/jobs/pages"),
			"agent a1 does not run /opt/jobs/pages: agent.programs of its settings does not allow it",
		},
		{reason.StepFails(reason.StepBuild, "disk full"), "the build of the table fails: disk full; tried again until it succeeds"},
		{reason.IndexFails("a value is too long"), "an index of serve.indexes cannot be created: a value is too long"},
	}
}

func faultExamples() []example {
	fault := func(kind job.FaultKind, detail string, from, to int64) reason.Reason {
		return reason.Fault(partition(), job.Fault{Kind: kind, Detail: detail, From: from, To: to})
	}
	return []example{
		{fault(job.FaultGap, "", 3, 5), "gap orders/2 [3,5): the log no longer holds these offsets"},
		{fault(job.FaultRecreated, "its id was a and is b", 0, 0), "topic recreated: orders/2: its id was a and is b"},
		{fault(job.FaultMissing, "", 0, 0), "topic missing: orders/2: the topic no longer exists"},
		{fault(job.FaultTooLarge, "", 7, 0), "record too large: orders/2@7: the record exceeds the client's limits"},
		{fault(job.FaultArchive, "", 7, 9), "archive file: orders/2 [7,9): a file of the archive is damaged or missing"},
		{fault(job.FaultQuery, "division by zero", 7, 0), "query error: orders/2@7: division by zero"},
		{fault(job.FaultRecord, "", 7, 0), "record error: orders/2@7: a record cannot be processed and on_error is fail"},
		{
			fault(job.FaultProgram, "10 times within 10m, the last time with exit code 3: no such host", 0, 0),
			"the program ends again and again: 10 times within 10m, the last time with exit code 3: no such host",
		},
		{fault(job.FaultTable, "", 0, 0), "table changed: orders/2: the version's table is not as kappactl created it"},
		{fault(job.FaultEpochs, "", 0, 0), "epochs differ: orders/2: the positions of the version have several epochs"},
		{fault("other", "", 0, 0), "orders/2: other"},
		{
			fault(job.FaultMissing, "", 0, 0).Next(reason.ReturnsOrDeploy()), "topic missing: orders/2: the topic no longer exists; " +
				"resumes when the topic with that id is back; next: kappactl deploy FILE (builds a new version)",
		},
		{reason.ReturnsOrDeploy(), "resumes when the topic with that id is back; next: kappactl deploy FILE (builds a " +
			"new version)"},
		{
			reason.ResumeOrDeploy(ref()), "next: kappactl resume orders v3 (tries again), or kappactl deploy FILE (builds a new version)",
		},
		{reason.ResumeRetries(ref()), "next: kappactl resume orders v3 (tries again)"},
		{
			reason.ResumeSkips(ref(), "orders/2@3-5"), "next: kappactl resume orders v3 (tries again), or " +
				"kappactl resume orders v3 --accept-gap orders/2@3-5 (skips these offsets)",
		},
	}
}

func coverageExamples() []example {
	at := reason.LossAt{Partition: partition(), Live: 2, Candidate: 3, LiveFrom: 10, From: 1210}
	missing := reason.LossMissing(at)
	return []example{
		{
			reason.CoversLess(job.Ref{Job: "orders", Number: 2}, ref(), []reason.Reason{missing}, reason.RowsUnknown(reason.NoTimeKey())),
			"orders/v3 covers less history than orders/v2, which is live: readers would lose results\n" +
				"  orders/2: v2 begins at offset 10, v3 does not read it\n" +
				"  rows of v2 older than what v3 covers: unknown: no key is a time\n" +
				"cures: set serve.keep in both versions, so that only the kept time must be covered; replay from where the " +
				"history " +
				"still is (an earlier replay.start, another topic, or an archive); or accept exactly this loss",
		},
		{
			reason.LossLater(at, reason.SpanUnknown()),
			"orders/2: v2 begins at offset 10, v3 at 1210 (1,200 offsets later), the time is unknown",
		},
		{
			reason.RowsKept(1200, "departs"), "up to all 1,200 that serve.keep keeps: it goes by departs, which may be later than " +
				"the times of the records",
		},
		{
			reason.LossGap(at), "orders/2: v3 goes on behind an accepted gap, offsets 10 to 1210 (1,200 offsets), " +
				"which v2 has read",
		},
		{
			reason.LossAdopted(at, reason.SpanBefore(noon())), "orders/2: v2, which was adopted, may hold results of the " +
				"records " +
				"before offset 1210, where v3 begins, everything before 2026-01-31T12:00:00Z",
		},
		{
			reason.LossRecreated(at), "orders/2: v2 begins at offset 10 of a topic (id 00000000-0000-0000-0000-000000000000) " +
				"that was deleted and created again; its records are gone",
		},
		{missing, "orders/2: v2 begins at offset 10, v3 does not read it"},
		{reason.Span(noon(), noon().Add(time.Hour)), "from 2026-01-31T12:00:00Z to 2026-01-31T13:00:00Z (1h)"},
		{reason.SpanBefore(noon()), "everything before 2026-01-31T12:00:00Z"},
		{reason.SpanUnknown(), "the time is unknown"},
		{reason.RowsOlder(1234, noon()), "1,234 before 2026-01-31T12:00:00Z"},
		{reason.RowsOlderMore(100_000, noon()), "more than 100,000 before 2026-01-31T12:00:00Z"},
		{reason.RowsUnknown(reason.Reason{}), "unknown"},
		{reason.StartUnknown(), "the time at which a partition begins is unknown"},
		{reason.NoTimeKey(), "no key is a time"},
		{reason.NoTimeLeft(), "there was no time left to count them"},
		{reason.CountTooSlow(3 * time.Second), "counting them takes longer than 3s"},
	}
}

func warningExamples() []example {
	return []example{
		{
			reason.Retention("orders/2", noon(), time.Hour, 2*time.Hour),
			"retention deletes unread records of orders/2 from 2026-01-31T12:00:00Z on (in 1h), before they are read (in " +
				"about 2h): " +
				"raise retention.ms, replay.max_rate or the number of workers",
		},
		{
			reason.RetentionUnknown("orders/2", noon(), -time.Second),
			"retention deletes unread records of orders/2 now; when they will be read is unknown",
		},
		{reason.RetentionOver(), "unread records are read before retention deletes them"},
		{
			reason.FutureTimestamps(partition(), noon(), 2), "a record of orders/2 has the timestamp " +
				"2026-01-31T12:00:00Z, which is in " +
				"the future: a producer's clock or its unit of time is wrong; so do records of 2 more partitions",
		},
		{
			reason.TombstonesLost("orders", 25*time.Hour, 24*time.Hour), "the replay has taken 25h and topic orders keeps tombstones " +
				"for 24h (delete.retention.ms): keys deleted since may stay in the table; deploy again with a faster replay " +
				"or a longer " +
				"delete.retention.ms",
		},
		{
			reason.TombstonesAtRisk("orders", 25*time.Hour, 24*time.Hour), "the replay will take about 25h and topic orders keeps " +
				"tombstones for 24h (delete.retention.ms): deletes may be missed",
		},
		{
			reason.OldTransaction(7, "pid 7 (psql), open for 10m"), "pid 7 (psql), open for 10m: rows that agents have replaced since then " +
				"cannot be removed, and a flip may wait for it",
		},
		{
			reason.DeadRows("public.t", 12000, 5), "table public.t has 12,000 dead rows and 5 live ones: autovacuum is off, or an old " +
				"transaction keeps it from them; once that has ended: VACUUM public.t",
		},
		{
			reason.ViewAggregates(job.ViewName{Schema: "public", Name: "orders"}), "of mode lambda public.orders merges its layers when it " +
				"is read: conditions on its keys still reach the indexes, but a join to it by key aggregates all of it first; write such " +
				"a join as LATERAL (SELECT * FROM public.orders v WHERE v.k = t.k OFFSET 0), or k = ANY (…)",
		},
		{reason.ReplaySlowed("a1", "replication lag 2s"), "the replay is slowed down on agent a1: replication lag 2s"},
		{reason.BrokerThrottled("a1", 0.25), "throttled by the broker: agent a1 waits 25% of its time for a quota"},
		{
			reason.KeysMoved(1, true, "offset"), "1 key has records in more than one partition; the offset decides which of them is the " +
				"newest: let producers choose the partition by the key",
		},
		{
			reason.KeysMoved(200_000, false, "offset"), "about 200,000 keys have records in more than one partition; the offset decides " +
				"which of them is the newest: let producers choose the partition by the key",
		},
		{
			reason.KeysMayMove(), "partitions were added: keys may have moved between partitions; the newest record of a " +
				"key is " +
				"decided by its order or time, not by its partition",
		},
		{
			reason.EmptyColumns(2, []string{"a", "b"}),
			"NULL in every row, while v2, which is live, has values: a, b; was a field renamed?",
		},
		{
			reason.NothingToReplay("latest", []string{"a", "b"}, 1200),
			"replay.start (latest) leaves nothing to replay of a, b, with 1,200 offsets in the log: only what arrives from now on is read; " +
				"to replay all of it, set replay.start: earliest",
		},
	}
}
