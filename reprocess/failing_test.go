package reprocess_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// raising makes an event trigger that lets the statements of a tag fail, as people's own rules may.
const raising = `CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today'; END $$;
	CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION refuse()`

func TestABuildThatKeepsFailingShowsItsCauseAndTheDeploymentGoesOnWhenItIsGone(t *testing.T) {
	w := newWorld(t, 10)
	w.config.Patience = time.Second
	w.sql(raising)
	w.run(1, nil)
	s := w.stage("aaa")
	began := time.Now()
	w.await("the cause in the verdict", func() bool {
		v := w.version(1)
		return v.ReasonCode == reason.CodeStepFails && strings.Contains(v.Reason, "not today (SQLSTATE P0001), in PL/pgSQL function refuse()")
	})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the cause is shown after %s", took)
	}
	d := w.finish(s.Deployment, "", job.ExitUnhealthy)
	has(t, d.Message, "the build of the table fails: not today")
	has(t, d.Next, "correct the cause", "kappactl wait counts v1")
	w.sql(`DROP EVENT TRIGGER refuse`)
	w.await("the end of the deployment", func() bool { return w.live() == "v1" })
	if v := w.version(1); v.ReasonCode == reason.CodeStepFails {
		t.Errorf("afterwards: %s", v.Reason)
	}
	w.exact()
}

func TestAnAbortEndsAStepThatKeepsFailing(t *testing.T) {
	w := newWorld(t, 10)
	w.sql(raising)
	w.run(1, nil)
	w.stage("aaa")
	w.await("the cause in the verdict", func() bool { return w.version(1).ReasonCode == reason.CodeStepFails })
	w.must(1, ledger.Abort, ledger.Args{})
}

func TestWhatFailsOnAnAgentIsTheVerdictOfLiveWhileItLasts(t *testing.T) {
	w := firstLive(t, 10)
	w.sql(`INSERT INTO kappactl.pace (job, number, agent, at, trouble)
		VALUES ('counts', 1, 'a1', clock_timestamp() + interval '1 h', '{"code": "commit_fails", "args": {"agent": "a1", "cause": "disk full"}}')`)
	w.await("a verdict", func() bool {
		v := w.version(1)
		return v.Verdict == job.Stalled && v.Reason == "agent a1 cannot commit results: disk full; tried again until it succeeds"
	})
	w.sql(`UPDATE kappactl.pace SET trouble = '{}'`)
	w.await("the verdict without it", func() bool { return w.version(1).Verdict == job.Ready })
}

func TestSQLOfTheViewThatPostgreSQLCannotEvaluateFailsTheDeployment(t *testing.T) {
	for name, text := range map[string]string{
		"22P02 at staging": `'soon'::int`, "22007": `'soon'::date`, "0A000": `generate_series(1, array_agg(1))`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			w.run(1, nil)
			s := w.stage("aaa", column(job.ViewColumn{Name: "d", Computed: true, Finish: text}))
			d := w.finish(s.Deployment, "", job.ExitUsage)
			has(t, d.Message, "serve.columns or serve.where: PostgreSQL SQL: ")
		})
	}
}

func TestAViewThatCannotBeReadIsNotPromoted(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	s := w.stage("aaa", column(job.ViewColumn{Name: "d", Computed: true, Finish: `n / (n - n)`}))
	d := w.finish(s.Deployment, "", job.ExitChecks)
	has(t, d.Message, "division by zero (SQLSTATE 22012)")
	if a := w.ask(1, ledger.Promote, ledger.Args{}); a.Code != job.ExitChecks || w.live() != "" {
		t.Errorf("promote: %+v", a)
	}
	s = w.stage("aaa", column(job.ViewColumn{Name: "d", Computed: true, Finish: `n / 2`}))
	w.finish(s.Deployment, "live", job.ExitOK)
}

func TestALiveViewThatCannotBeReadAnyMoreIsShown(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	w.finish(w.stage("aaa", column(job.ViewColumn{Name: "d", Computed: true, Finish: `60 / (n - 12)`})).Deployment, "live", job.ExitOK)
	unreadable := func() bool {
		v := w.version(1)
		return v.Verdict == job.Stalled && v.ReasonCode == reason.CodeUnreadable && strings.Contains(v.Reason, "division by zero")
	}
	w.brokers.produce(0, 2)
	w.await("the cause in the verdict", unreadable)
	w.brokers.produce(0, 1)
	w.await("the verdict without it", func() bool { return w.version(1).Verdict == job.Ready })
	// Or the file is corrected: nothing is replayed and no flag is asked for.
	w.finish(w.stage("aaa", column(job.ViewColumn{Name: "d", Computed: true, Finish: `60 / (n - 15)`})).Deployment, "live", job.ExitOK)
	w.brokers.produce(0, 2)
	w.await("the cause in the verdict", unreadable)
	w.finish(w.stage("aaa", column(job.ViewColumn{Name: "d", Computed: true, Finish: `n / 2`})).Deployment, "live", job.ExitOK)
	w.await("the verdict without it", func() bool { return w.version(1).Verdict == job.Ready })
}

func TestAChangeInPlaceThatMakesTheViewUnreadableIsNotApplied(t *testing.T) {
	w := newWorld(t, 10)
	w.run(1, nil)
	half := column(job.ViewColumn{Name: "d", Computed: true, Finish: `n / 2`})
	w.finish(w.stage("aaa", half).Deployment, "live", job.ExitOK)
	s := w.stage("aaa", column(job.ViewColumn{Name: "d", Computed: true, Finish: `n / (n - n)`}))
	d := w.finish(s.Deployment, "", job.ExitChecks)
	has(t, d.Message, "division by zero")
	if got := w.text(`SELECT d::text FROM public.counts`); got != "5" {
		t.Errorf("readers see %s", got)
	}
}
