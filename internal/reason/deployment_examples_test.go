package reason_test

import (
	"errors"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

func deploymentExamples() []example {
	standby := job.Number(2)
	flip := reason.Flip{To: ref(), Standby: &standby, Keep: 24 * time.Hour}
	forced := flip
	forced.Behind, forced.Readers = reason.Behind(9, time.Minute), []string{"pid 1 (psql)"}
	failed := reason.FailedTwice("rows", reason.Error(errors.New("no rows")))
	return []example{
		{reason.StagedAsAsked(), "staged, as requested"},
		{reason.CaughtUpAsAsked(), "caught up, as requested"},
		{reason.Verified(ref(), nil), "orders/v3 is verified and waits to be promoted"},
		{reason.LiveChanged(ref(), new(job.Number(4))), "orders/v3 was verified beside another live version: v4 is live now"},
		{
			reason.Unreadable(ref(), "division by zero"), "serve.columns or serve.where cannot be computed for every row of orders/v3, so " +
				"that readers would get an error: division by zero",
		},
		{reason.LiveChanged(ref(), nil), "orders/v3 was verified beside another live version: no version is live now"},
		{
			reason.FewRows(ref(), 2, 1), "orders/v3 has 1 row, less than a tenth of what readers see in v2: it is not promoted " +
				"automatically",
		},
		{
			reason.Verified(ref(), []reason.Reason{reason.NoWorker()}), "orders/v3 is verified and waits to be promoted; " +
				"warning: " +
				"no worker reads it",
		},
		{reason.Live(reason.Flip{To: ref()}), "orders/v3 is live"},
		{reason.Live(flip), "orders/v3 is live; v2 kept as standby for 24h"},
		{
			reason.RolledBack(forced), "rolled back: orders/v3 is live again; v2 kept as standby for 24h\n" +
				"warning: orders/v3 was not up to date: 9 records, 1m behind; readers miss newer results until it has caught up\n" +
				"warning: did not wait for 1 reader with a snapshot older than the flip; those transactions may see values " +
				"go backwards:" +
				"\n  pid 1 (psql)",
		},
		{reason.RolledBackBecause(ref(), failed), `rolled back to orders/v3: check "rows" failed twice in a row: no rows`},
		{failed, `check "rows" failed twice in a row: no rows`},
		{
			reason.CannotRollBack(failed, "v2", reason.Refused("v2 is paused")),
			`check "rows" failed twice in a row: no rows; automatic rollback to v2 failed: v2 is paused`,
		},
		{reason.WindowOver(), "the rollback window is over"},
		{
			reason.WindowOverFailing(ref(), "rows", reason.Refused("no rows"), "", reason.Reason{}),
			`the rollback window of orders/v3 is over and check "rows" fails: no rows; readers stay with it`,
		},
		{
			reason.WindowOverFailing(ref(), "rows", reason.Refused("no rows"), "v2", reason.Paused()),
			`the rollback window of orders/v3 is over and check "rows" fails: no rows; automatic rollback to v2 failed: paused`,
		},
		{reason.BuildFailed(errors.New("disk full")), "the table cannot be built: disk full"},
		{reason.NotReady(ref(), job.Lagging, reason.Behind(9, time.Minute)), "orders/v3 is lagging: 9 records, 1m behind"},
		{reason.Unhealthy(ref(), reason.Refused("gap")), "orders/v3 is unhealthy: gap"},
	}
}

func checkExamples() []example {
	failed := reason.CheckAnswer("sane", "fail", reason.CheckFalse(), nil)
	return slices.Concat([]example{
		{reason.ChecksPassed(1), "1 check"},
		{reason.ChecksFailed([]reason.Reason{reason.NoKeys(), reason.Refused("b")}), "no keys on either side, b"},
		{failed, `check "sane": fail: it returned false`},
		{reason.CheckAnswer("sane", "pass", reason.Reason{}, nil), `check "sane": pass`},
		{
			reason.CheckAnswer("close", "fail", reason.KeysChanged(2), []string{"[1] n 1 → 2", "[2] n 3 → 4"}),
			"check \"close\": fail: 2 keys changed\n    [1] n 1 → 2\n    [2] n 3 → 4",
		},
		{reason.CheckAfterFlip(failed), `after the flip: check "sane": fail: it returned false`},
		{
			reason.NotPromoted(ref(), []reason.Reason{failed}),
			"orders/v3 is not promoted:\n  check \"sane\": fail: it returned false",
		},
		{reason.Recovered(3), "the check that failed after the flip no longer fails: readers stay with v3"},
	}, checkDetailExamples(), checkDiffExamples())
}

func checkDetailExamples() []example {
	const oneRow = "; a check returns one row with one boolean"
	return []example{
		{reason.CheckFalse(), "it returned false"},
		{reason.CheckNull(), "it returned NULL; write coalesce(…, false) where that is a failure"},
		{reason.CheckRows(1200), "it returned 1,200 rows" + oneRow},
		{reason.CheckColumns(2), "it returned 2 columns" + oneRow},
		{reason.CheckType("int8"), "its value is int8" + oneRow},
		{reason.CheckError("relation x does not exist"), "relation x does not exist"},
		{reason.CheckWrites("cannot execute UPDATE"), "it writes, and checks only read: cannot execute UPDATE"},
		{
			reason.CheckWritesInWith(),
			"it writes, and checks only read: a WITH in it inserts, updates, deletes or merges",
		},
		{reason.CheckTimedOut(20 * time.Millisecond), "no answer within 20ms"},
		{reason.CheckCancelled(), "it was cancelled in PostgreSQL"},
		{reason.CheckCutOff(), "the connection to PostgreSQL ended during the check"},
		{reason.CheckNotRun("sane"), `not run: the connection to PostgreSQL ended during check "sane"`},
		{
			reason.RoleNeedsTemporary(`"r"`, `"d"`),
			`role "r" runs checks and may not create temporary objects: GRANT TEMPORARY ON DATABASE "d" TO "r"`,
		},
		{
			reason.RoleNeedsLanguage(`"r"`),
			`role "r" runs checks and may not use the language of the function that they run in: ` +
				`GRANT USAGE ON LANGUAGE plpgsql TO "r"`,
		},
		{
			reason.VersionsApart(ref(), ref(), 5*time.Second),
			"orders/v3 and orders/v3 did not reach the same offsets within 5s",
		},
		{reason.BarrierExpired(), "the versions were not held long enough for the checks to begin"},
		{reason.BarrierTaken(errors.New("held by another")), "held by another"},
		{reason.NoLiveVersion(), "no live version to compare with"},
		{reason.NotHeld(3), "v3 does not stop at given offsets, so it cannot be compared with"},
		{reason.LiveIsDown(3, reason.IsPaused()), "v3, which is live, cannot be compared with: it is paused"},
		{reason.NoPrevious(), "no version was live before"},
		{reason.PreviousIs(2, "paused"), "v2, which was live before, is paused"},
		{reason.PreviousUnhealthy(2, reason.NoWorker()), "v2, which was live before, is unhealthy: no worker reads it"},
		{reason.StoppedAt(noon(), reason.NoWorker()), "it stopped at 2026-01-31T12:00:00Z: no worker reads it"},
		{reason.IsStalled(reason.NoWorker()), "it is stalled: no worker reads it"},
		{reason.IsPaused(), "it is paused"},
	}
}

func checkDiffExamples() []example {
	changed, only := reason.KeysChanged(1), reason.KeysOnlyIn("v1", 1200)
	limited := reason.KeysLimited(only, 0.03, 0)
	return []example{
		{reason.NoKeys(), "no keys on either side"},
		{changed, "1 key changed"},
		{only, "1,200 only in v1"},
		{limited, "1,200 only in v1 (3%, allowed 0%)"},
		{
			reason.Compared([]reason.Reason{changed, only}, 0.5, 2402, 0.01, nil),
			"1 key changed, 1,200 only in v1 (50% of 2,402, allowed 1%)",
		},
		{
			reason.Compared([]reason.Reason{changed}, 0.0004, 2402, 0.01, []reason.Reason{limited}),
			"1 key changed (0.04% of 2,402, allowed 1%); 1,200 only in v1 (3%, allowed 0%)",
		},
	}
}
