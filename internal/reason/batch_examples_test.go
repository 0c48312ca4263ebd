package reason_test

import (
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

func batchExamples() []example {
	base, compared, changed := 4, int64(4000), int64(12)
	at := job.Partition{Topic: "orders", ID: 2}
	return []example{
		{reason.BatchStarted(ref(), 5, nil), "generation 5 of orders/v3 is computed from scratch"},
		{reason.BatchStarted(ref(), 5, &base), "generation 5 of orders/v3 is computed from generation 4 and what came since"},
		{reason.BatchStarted(ref(), 1, new(int)), "generation 1 of orders/v3 is computed from generation 0 and what came since"},
		{reason.BatchShown(ref(), 5, nil, nil, false), "generation 5 of orders/v3 is live"},
		{reason.BatchShown(ref(), 5, &compared, &changed, true), "generation 5 of orders/v3 is live; 4,000 keys compared, 12 changed, accepted"},
		{
			reason.BatchChanged(ref(), 5, compared, changed, 0.003, 0),
			"12 of 4,000 keys of generation 5 of orders/v3 differ from what readers see, 0.3%; batch.max_changed is 0%",
		},
		{
			reason.BatchChecked(ref(), 5, []reason.Reason{reason.CheckAnswer("sane", "fail", reason.CheckFalse(), nil)}),
			"generation 5 of orders/v3 is not shown:\n  check \"sane\": fail: it returned false",
		},
		{reason.BatchAccepted(ref(), 5), "generation 5 of orders/v3, which was refused, is accepted as it is"},
		{
			reason.BatchUnreadable(ref(), 5, reason.AllRead()),
			"generation 5 of orders/v3 cannot be computed: all records are read",
		},
		{
			reason.BatchMissing(at, job.Range{From: 0, To: 40}),
			"orders/2 [0,40) is neither in the archive nor in the log: no generation can be computed",
		},
		{reason.BatchCancelled(ref(), 5, "ann"), "the run of generation 5 of orders/v3 was cancelled by ann"},
		{reason.BatchCancelled(ref(), 5, ""), "the run of generation 5 of orders/v3 was cancelled"},
		{
			reason.BatchVoid(ref(), 5, 4),
			"generation 5 of orders/v3 is void: generation 4, from which it was computed, is no longer live",
		},
		{reason.BatchVersionEnded(ref(), 5, job.Retiring), "generation 5 of orders/v3 is given up: orders/v3 is retiring"},
		{reason.BatchRolledBack(ref(), 3, 5, nil, false), "generation 3 of orders/v3 is live again instead of generation 5"},
		{
			reason.BatchRolledBack(ref(), 3, 5, &base, true),
			"generation 3 of orders/v3 is live again instead of generation 5; the run of generation 4 is cancelled; the schedule is paused",
		},
		{
			reason.BatchNotKept(ref(), 2, "retired", []string{"4", "3"}),
			"generation 2 of orders/v3 is retired: readers can be shown a kept one (4, 3)",
		},
		{reason.BatchNotKept(ref(), 2, "failed", nil), "generation 2 of orders/v3 is failed: readers can be shown a kept one, and there is none"},
		{reason.BatchAlreadyLive(ref(), 3), "generation 3 of orders/v3 is live already"},
		{reason.BatchUnderWay(ref(), 5), "generation 5 of orders/v3 is being computed"},
		{reason.BatchNoneUnderWay(ref()), "no batch run of orders/v3 is under way"},
		{reason.BatchTooEarly(ref(), job.Replaying), "orders/v3 is replaying: its first generation is its replay"},
		{reason.BatchWaitsLocks("canceling statement due to lock timeout"), "it waits for locks of other sessions: canceling statement due to lock timeout"},
		{reason.BatchWaitsReaders([]string{"session 7", "replication slot s"}), "it waits for snapshots that are older than the flip away from it: session 7, replication slot s"},
		{reason.BatchPaused(ref()), "orders/v3 is paused: nothing is read for generations until it is resumed"},
		{
			reason.BatchHeld(ref(), &base, reason.TriedAgain("the disk is full")),
			"generation 4 of orders/v3: the disk is full; it is tried again",
		},
		{reason.BatchHeld(ref(), nil, reason.TriedAgain("no answer")), "the batch run of orders/v3: no answer; it is tried again"},
		{reason.BatchRemoved(ref(), 2), "generation 2 of orders/v3 is removed"},
		{reason.NotLambda(ref()), "orders/v3 has no batch layer: its job file has no mode: lambda"},
	}
}
