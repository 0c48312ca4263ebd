package reason_test

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

func eventExamples() []example {
	return []example{
		{reason.Phase(job.Staged, job.Replaying, "frozen"), "staged → replaying: frozen"},
		{
			reason.PartitionsAdded(1),
			"1 partition was added, read from the first offset; keys may have moved between partitions",
		},
		{reason.StagedAs("0123456789ab"), "staged as 0123456789ab"},
		{reason.StandbyDeployed(), "the same version is standby: nothing is replayed"},
		{reason.ToApply([]string{"serve.where", "keep_old"}), "the live version stays; to be applied in place: serve.where, keep_old"},
		{reason.Applied([]string{"serve.where", "keep_old"}), "applied in place: serve.where, keep_old; nothing is replayed"},
		{reason.ReplayExtended(1200), "1,200 records arrived since the replay ranges were set"},
		{reason.StepTook("fill", 1.25), "fill took 1.2s"},
		{reason.StepTook("index", 2), "index took 2.0s"},
		{reason.Cleaned(""), "table, positions and consumer group are deleted"},
		{reason.Cleaned("public.t"), "positions and consumer group are deleted; table public.t stays"},
		{reason.BeforePromote(ref()), "orders/v3 is about to be promoted"},
		{reason.HookTold("ticket", job.HookBeforePromote), "hook ticket was told of before_promote"},
		{reason.HookFailed("ticket", job.HookBeforePromote, "exit status 1"), "hook ticket, told of before_promote: exit status 1"},
		{reason.WindowEndedByFlip(), "the flip to another version ended its rollback window"},
		{reason.GapAccepted(ref(), "orders/2:3-5"), "orders/v3 skips orders/2:3-5: its results lack these offsets"},
		{reason.Pinned(ref()), "orders/v3 is pinned"},
		{reason.Unpinned(ref()), "orders/v3 is unpinned"},
		{reason.DropBegins([]string{"drop view v", "drop table t"}), "drop view v; drop table t"},
	}
}

func archiveExamples() []example {
	return []example{
		{reason.ArchiveGapAccepted("orders/2:3-5"), "the archive goes on without orders/2:3-5: it lacks these offsets"},
		{reason.ArchiveResumed("orders", 3), "the archive of orders tries again: 3 partitions"},
		{reason.ArchivePruned("orders", 1200, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), "1,200 files with records from before 2026-01-01T00:00:00Z removed from the archive of orders"},
		{reason.ArchiveAdopted("orders", "file:///srv/archive"), "the files at file:///srv/archive are taken as the archive of orders"},
		{
			reason.ArchiveLate("orders", []int32{1, 3}, new(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))),
			"the archive of orders is late in 2 partitions (1, 3): records may be deleted before they are archived, from 2026-01-01T00:00:00Z on",
		},
		{reason.ArchiveLate("orders", []int32{3}, nil), "the archive of orders is late in 1 partition (3): records may be deleted before they are archived"},
		{
			reason.ArchiveStopped("orders", make([]int32, 12), "offsets are lost"),
			"the archive of orders has stopped in 12 partitions (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...): offsets are lost",
		},
		{
			reason.ArchiveLostDeletes(job.Partition{Topic: "orders", ID: 2}, job.Range{From: 3, To: 9}),
			"the archive of orders/2 may lack deletes of keys whose values are in [3,9): a computation from it brings back what was deleted",
		},
		{reason.ArchiveRebuilt("orders", 1), "1 file was put back into the archive of orders"},
	}
}

func scheduleExamples() []example {
	tick := time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC)
	return []example{
		{reason.SchedulePaused(), "the schedule is paused: no batch run begins by itself"},
		{reason.ScheduleResumed(tick), "the schedule goes on; the next batch run is due at 2026-01-01T02:00:00Z"},
		{reason.ScheduleMissed(1, tick), "1 batch run was missed, due from 2026-01-01T02:00:00Z on"},
		{reason.ScheduleMissed(72, tick), "72 batch runs were missed, due from 2026-01-01T02:00:00Z on"},
		{reason.ScheduleFailed(tick, reason.Reason{}), "the batch run of 2026-01-01T02:00:00Z failed"},
		{
			reason.ScheduleFailed(tick, reason.AllRead()),
			"the batch run of 2026-01-01T02:00:00Z failed: " + reason.AllRead().Text(),
		},
		{
			reason.BatchLate(&tick),
			"two batch runs were due and readers see the results of neither: what they see was cut at 2026-01-01T02:00:00Z",
		},
		{reason.BatchLate(nil), "two batch runs were due and readers see the results of neither"},
	}
}

func actExamples() []example {
	table := job.Adoption{Kind: "table", View: job.ViewName{Schema: "public", Name: "v"}, To: job.Ref{Job: "v"}}
	view := table
	view.Kind = "view"
	return []example{
		{reason.VersionPaused(ref()), "orders/v3 is paused"},
		{reason.Resumed(ref(), nil), "orders/v3 is resumed"},
		{reason.Resumed(ref(), []string{"a/0:1-2", "a/1:3-4"}), "orders/v3 is resumed without a/0:1-2, a/1:3-4"},
		{reason.Retried(ref(), []string{"a/0", "a/1"}), "orders/v3 tries a/0, a/1 again"},
		{reason.Retried(ref(), []string{"a/0", "a/1", "a/2", "a/3"}), "orders/v3 tries a/0, a/1, a/2 again and 1 partition more"},
		{reason.NotPaused(ref()), "orders/v3 is not paused and has no fault: nothing changes"},
		{
			reason.NothingToResume(ref(), reason.AllRead()),
			"orders/v3 is not paused and has no fault to retry, but it is unhealthy: all records are read",
		},
		{reason.Aborted(ref()), "orders/v3 is aborted"},
		{reason.AbortedBy(ref(), "ann"), "orders/v3 was aborted by ann"},
		{reason.Retired(ref(), "", []string{"orders__v3"}), "orders/v3 is retired; its table is dropped"},
		{
			reason.Retired(ref(), "", []string{"orders__v3", "orders__v3_batch", "orders__v3_gen"}),
			"orders/v3 is retired; its tables orders__v3, orders__v3_batch, orders__v3_gen are dropped",
		},
		{reason.Retired(ref(), "public.t", nil), "orders/v3 is retired; table public.t stays: it existed before the job"},
		{reason.JobDropped("orders", nil), "job orders is dropped"},
		{reason.JobDropped("orders", []string{"view v", "table t"}), "job orders is dropped; view v and table t stays"},
		{reason.JobDropping(), "the job is being dropped"},
		{
			reason.RelationAdopted(table),
			"table public.v is adopted: it is now public.v__v0, and a view in its place reads it as v/v0",
		},
		{
			reason.RelationAdopted(view),
			"view public.v is adopted: its definition is now public.v__v0, which it reads as v/v0",
		},
		{reason.RequestUnreadable(), "the request's arguments cannot be read"},
	}
}

func refusalExamples() []example {
	live, behind := job.Ref{Job: "orders", Number: 2}, reason.Behind(1200, 5*time.Second)
	return []example{
		{reason.AlreadyLive(ref()), "orders/v3 is live already"},
		{
			reason.NotKeptUp(ref()),
			"orders/v3 is an adopted table that kappactl does not update: readers can only go back to it",
		},
		{reason.InPhase(ref(), job.Retiring), "orders/v3 is retiring"},
		{
			reason.NotCaughtUp(ref(), job.CatchingUp, job.Lagging, behind),
			"orders/v3 is catching_up: lagging: 1,200 records, 5s behind",
		},
		{reason.NotCaughtUp(ref(), job.Staged, job.Unknown, reason.Reason{}), "orders/v3 is staged: unknown"},
		{reason.HookRefused(ref(), "ticket", "exit status 1"), "orders/v3 is not promoted: hook ticket refused: exit status 1"},
		{reason.NothingLive("orders"), `job "orders" has no live version to roll back from`},
		{reason.NotStandby(ref(), job.Retired), "orders/v3 is retired and not standby: readers cannot go back to it"},
		{
			reason.AdoptedIsOld(ref(), job.ViewName{Schema: "public", Name: "t"}),
			"orders/v3 is public.t as it was adopted: kappactl has not written to it, so going back to it loses newer results",
		},
		{
			reason.StandbyStale(ref(), noon(), reason.NoWorker(), behind),
			"orders/v3 is standby (stale since 2026-01-31T12:00:00Z): no worker reads it; it is 1,200 records, 5s behind; " +
				"going back to it loses newer results",
		},
		{
			reason.StandbyPaused(ref(), noon(), reason.BehindAsOf(behind, time.Minute)),
			"orders/v3 is standby and paused since 2026-01-31T12:00:00Z; it is 1,200 records, 5s behind, as of 1m ago; " +
				"going back to it loses newer results",
		},
		{
			reason.StandbyNotReady(ref(), job.Lagging, behind, reason.EndUnknown()),
			"orders/v3 is standby and lagging: 1,200 records, 5s behind; it is behind by an unknown amount: the brokers do not " +
				"report the end of the log; going back to it loses newer results",
		},
		{
			reason.StandbyNotReady(ref(), job.Unhealthy, reason.NoWorker(), reason.Reason{}),
			"orders/v3 is standby and unhealthy: no worker reads it",
		},
		{
			reason.StandbyLacks(ref(), live, []reason.Reason{reason.NoWorker()}),
			"orders/v3 is standby and lacks records that orders/v2, which is live, has: going back to it loses them\n" +
				"  no worker reads it",
		},
		{reason.NeverSampled(), "behind by an unknown amount: it was never sampled"},
		{reason.EndUnknown(), "behind by an unknown amount: the brokers do not report the end of the log"},
		{reason.BehindAsOf(behind, time.Minute), "1,200 records, 5s behind, as of 1m ago"},
		{reason.IsLive(ref()), "orders/v3 is live: readers see it"},
		{reason.NeverLive(ref()), "orders/v3 was never live: abort it"},
		{reason.InsideWindow(ref(), noon()), "orders/v3 is inside its rollback window until 2026-01-31T12:00:00Z"},
		{reason.TableRead(ref(), []string{"view a", "view b"}), "other relations read the table of orders/v3: view a, view b"},
		{
			reason.ReadersHold([]string{"pid 7"}, true),
			"readers have a snapshot open that is older than the flip:\n  pid 7",
		},
		{reason.CannotAbort(ref(), job.Live), "orders/v3 is live: it can no longer be aborted"},
		{reason.AdoptedIdle(ref()), "orders/v3 was adopted: kappactl does no work on it"},
		{reason.NothingToPause(ref(), job.Retired), "orders/v3 is retired: there is nothing to pause or resume"},
		{reason.NoSuchGap(ref(), "a/0:1-2"), "orders/v3 has no gap a/0:1-2"},
		{reason.NothingToKeep(ref(), job.Retired), "orders/v3 is retired: there is nothing to keep"},
		{reason.DeploymentRolling("orders"), "another deployment of orders is rolling out; a job has one at a time"},
	}
}

func tryExamples() []example {
	view := job.ViewName{Schema: "public", Name: "v"}
	return []example{
		{reason.PhaseChanged(ref(), job.Verified, ""), "orders/v3 is no longer verified"},
		{reason.PhaseChanged(ref(), job.Verified, job.Aborted), "orders/v3 is no longer verified but aborted"},
		{reason.RowsInUse(), "rows of the job are in use"},
		{reason.CommitUnknown(), "the outcome of the commit is unknown"},
		{
			reason.LockNotGranted("view", view, 80*time.Millisecond, []string{"pid 7", "pid 8"}),
			"a lock on view public.v was not granted within 80ms\n  pid 7\n  pid 8",
		},
		{reason.BarrierEnded(), "the barrier ended before the flip"},
		{
			reason.OlderSnapshots([]string{"pid 7"}, false),
			"readers have a snapshot open that is older than the flip; they could see values go backwards " +
				"(--ignore-snapshots flips without waiting for them); without pg_read_all_stats newer ones cannot be told " +
				"from older ones, so this may wait needlessly\n  pid 7",
		},
		{
			reason.NotTakenUp(ref(), job.Ref{Job: "orders", Number: 2}, partition()),
			"orders/v3 has not taken up orders/2 yet, a new partition that orders/v2 reads",
		},
		{
			reason.GaveUp("promote", "orders/v3", time.Minute, reason.BarrierEnded()),
			"promote of orders/v3 gave up after 1m: the barrier ended before the flip",
		},
	}
}
