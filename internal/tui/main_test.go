package tui

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// envShow makes the test program show the interface on its terminal with made-up data, to look at: the value is the job,
// or "all".
const envShow = "KAPPACTL_TUI_SHOW"

func TestMain(m *testing.M) {
	if name := os.Getenv(envShow); name != "" {
		show(name)
		return
	}
	goleak.VerifyTestMain(m)
}

func show(name string) {
	o := Options{
		In: os.Stdin, Out: os.Stdout, Now: time.Now,
		Look: Look{Color: os.Getenv("NO_COLOR") == "", ASCII: os.Getenv("LC_ALL") == "C"}, ReadOnly: os.Getenv("READONLY") != "",
	}
	if name != "all" {
		o.Job = job.Name(name)
	}
	outcome, err := Run(context.Background(), &madeUp{began: time.Now()}, o)
	for _, l := range outcome.Summary {
		_, _ = fmt.Fprintln(os.Stdout, l)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(int(outcome.Code))
}

// madeUp is a Source whose candidate catches up within a minute.
type madeUp struct{ began time.Time }

func (s *madeUp) now() time.Duration { return time.Since(s.began) }

// moved shifts what was made for noon to now.
func moved(v status.Version) status.Version {
	by := time.Since(noon())
	v.PhaseSince, v.CreatedAt = v.PhaseSince.Add(by), v.CreatedAt.Add(by)
	for i := range v.Partitions {
		v.Partitions[i].SampledAt = time.Now()
	}
	return v
}

func (s *madeUp) candidate() status.Version {
	seconds := s.now().Seconds()
	var parts []status.Partition
	for i := range int32(16) {
		end := 1_168_444 + int64(seconds*120)
		left := int64(float64(end) * max(0, 1-seconds*(1+float64(i%5)/10)/60))
		rate := 21_000 * (1 + 0.3*math.Sin(seconds/3+float64(i)))
		parts = append(parts, part("pageviews", i, end-left, end, time.Duration(left/20_000)*time.Second, rate, job.Lagging, fmt.Sprintf("%d records behind", left)))
	}
	v := version("v2", job.CatchingUp, job.Lagging, parts[0].Reason, parts...)
	if seconds > 62 {
		v.Phase, v.Verdict, v.Reason = job.Verified, job.Ready, "16 partitions within limits"
	}
	return v
}

func (s *madeUp) Jobs(context.Context) (Overview, error) {
	o := fleet()
	for i := range o.Jobs {
		for k := range o.Jobs[i].Versions {
			o.Jobs[i].Versions[k] = moved(o.Jobs[i].Versions[k])
		}
		if o.Jobs[i].Job == "pageviews" {
			o.Jobs[i].Versions[0] = moved(s.candidate())
		}
	}
	return o, nil
}

func (s *madeUp) Job(_ context.Context, name job.Name) (Detail, error) {
	if seconds := s.now().Seconds(); seconds > 20 && seconds < 30 {
		return Detail{}, fmt.Errorf("PostgreSQL at 127.0.0.1:5432: connection refused")
	}
	d := detail(moved(s.candidate()), moved(liveVersion(16)))
	d.Status.Job = name
	d.Deployment.CreatedAt = s.began
	return d, nil
}

func (s *madeUp) Events(context.Context, job.Name) ([]Event, error) { return events(), nil }

func (s *madeUp) Resolve(_ context.Context, name job.Name, verb ledger.Verb) (job.Ref, error) {
	if verb == ledger.Rollback {
		return job.Ref{}, &job.Refusal{Code: job.ExitConflict, Cause: "job \"pageviews\" has no version to roll back. v1 is live. v2 is catching_up.", Next: "kappactl status pageviews"}
	}
	return job.Ref{Job: name, Number: 2}, nil
}

func (s *madeUp) Do(ctx context.Context, a Act) (ledger.Answer, error) {
	select {
	case <-ctx.Done():
		return ledger.Answer{}, ctx.Err()
	case <-time.After(2 * time.Second):
	}
	return ledger.Answer{Reason: reason.Refused(a.Ref.String() + ": done"), Next: "kappactl status pageviews"}, nil
}
