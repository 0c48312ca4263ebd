package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// goal is how far a version has to come for a command that waits; empty is where the deployment stops by itself.
type goal string

// The goals that the code itself asks about.
const (
	goalStaged  goal = "staged"
	goalLive    goal = "live"
	goalSettled goal = "settled"
)

// flipped says that the goal lies behind the flip.
func (g goal) flipped() bool { return g == goalLive || g == goalSettled }

const (
	followEvery      = 200 * time.Millisecond
	progressTerminal = time.Second
	progressPipe     = 10 * time.Second
)

// follower attaches to a deployment, prints its progress and returns when it is as far as goal or can no longer get there.
type follower struct {
	*app
	client     *client
	deployment int64
	goal       goal
	resumed    bool // it was under way before this command
	line       progressLine
	stream     *stream // with --output jsonl
	reportDir  string  // empty: no report
	began      time.Time
}

// took is how long the command has taken so far, in seconds to the millisecond.
func (f *follower) took() float64 {
	return math.Round(f.sys.Now().Sub(f.began).Seconds()*1000) / 1000
}

// run returns the deployment as it then is and the exit code.
func (f *follower) run(ctx context.Context) (ledger.Deployment, job.ExitCode, error) {
	w := newPatience(f.app, f.client)
	if f.streams() {
		f.stream = newStream(f.app, f.client)
		w.noticed = f.stream.warn
	}
	f.line.every = progressPipe
	if f.sys.ErrTTY {
		f.line.every = progressTerminal
	}
	var last ledger.Deployment
	for {
		d, err := f.client.store.Deployment(ctx, f.deployment)
		if err == nil {
			last = d
			code, done := d.Outcome(string(f.goal))
			f.report(ctx, d)
			if f.stream != nil && f.stream.err != nil {
				return last, job.ExitFailed, withNext(f.stream.err, f.comeBack(last)) // nobody reads it any more
			}
			if done {
				return d, code, nil
			}
		}
		if err := w.pause(ctx, followEvery, err); err != nil {
			return last, job.ExitFailed, f.broken(ctx, last, withNext(err, f.comeBack(last)))
		}
	}
}

// broken ends the stream of a command that stops looking: the deployment goes on.
func (f *follower) broken(ctx context.Context, d ledger.Deployment, err error) error {
	if f.stream == nil || !f.stream.began {
		return err
	}
	e := explain(ctx, err)
	return errors.Join(err, f.end(deployResult{
		Job: d.Job, Version: d.Number.String(), Deployment: d.ID, Phase: d.Phase, ExitCode: e.Code, Records: d.Records,
		Seconds: f.took(), Resumed: f.resumed, Message: strings.Join(e.Causes, "; "), Next: e.Next,
	}))
}

// report prints a line when there is something to say.
func (f *follower) report(ctx context.Context, d ledger.Deployment) {
	if f.stream != nil {
		if !f.stream.began {
			f.stream.start(ctx, d, f.resumed)
		}
		f.stream.look(ctx, d)
		return
	}
	if f.flags.quiet || !f.line.due(f.sys.Now(), d) {
		return
	}
	var v *status.Version
	if status, err := f.client.store.Status(ctx, d.Job); err == nil {
		v, _ = versionOf(status, d.Number) // without it the line says less
	}
	if text := f.line.text(f.sys.Now(), d, v); text != "" {
		f.progress("%s", text)
	}
}

func (f *follower) comeBack(d ledger.Deployment) string {
	if d.Job == "" {
		return ""
	}
	want := f.goal
	if want == "" || want == goalStaged {
		want = "verified"
		if d.Promote == string(job.PromoteAuto) {
			want = goalLive
		}
	}
	return fmt.Sprintf("kappactl wait %s %s --for %s   # the deployment goes on", d.Job, d.Number, want)
}

// progressLine decides when a line of progress is due and what it says: at every change of phase or verdict, and in
// between at most once in every.
type progressLine struct {
	every   time.Duration
	printed time.Time
	last    string
	state   string
}

// due says that something changed or that it is time. Holding still is no progress, so it is said less often.
func (p *progressLine) due(now time.Time, d ledger.Deployment) bool {
	every := p.every
	if d.Verdict == job.Holding {
		every = progressPipe
	}
	return stateOf(d) != p.state || now.Sub(p.printed) >= every
}

func stateOf(d ledger.Deployment) string {
	return fmt.Sprintf("%s/%s/%s/%t", d.State, d.Phase, d.Verdict, d.Paused)
}

// text is the line, or empty when it would say nothing new.
func (p *progressLine) text(now time.Time, d ledger.Deployment, v *status.Version) string {
	p.state, p.printed = stateOf(d), now
	parts := []string{fmt.Sprintf("%s %s %s", d.Job, d.Number, phaseWord(d))}
	if v != nil && (d.Phase == job.Replaying || d.Phase == job.CatchingUp) {
		parts = append(parts, amounts(d, *v)...)
	}
	if tells(d) {
		parts = append(parts, d.Reason.Text())
	}
	if d.State == job.Observing && d.Message != "" { // why readers are not taken back
		first, _, _ := strings.Cut(d.Message, "\n")
		parts = append(parts, first)
	}
	line := strings.Join(parts, "  ")
	if line == p.last {
		return ""
	}
	p.last = line
	return line
}

// tells reports whether the reason of the verdict says more than the phase and the amounts.
func tells(d ledger.Deployment) bool {
	switch {
	case d.Reason.IsZero() || d.Phase.Ended():
		return false
	case d.Phase == job.Replaying || d.Phase == job.Building:
		return d.Verdict != job.ReplayingRanges && d.Verdict != job.Unknown
	}
	return d.Verdict != job.Ready
}

func phaseWord(d ledger.Deployment) string {
	word := string(d.Phase)
	if d.Paused {
		word += " (paused)"
	}
	return word
}

// amounts are what is known of how much is done, how fast, and when it is done.
func amounts(d ledger.Deployment, v status.Version) []string {
	var out []string
	if v.LagRecords != nil {
		left := *v.LagRecords
		if d.Phase == job.Replaying && d.Records+left > 0 {
			// Two figures that need not add up: what is left is sampled once a second, what is read is fresh.
			out = append(out, fmt.Sprintf("%s read, %s to go", render.Plural(d.Records, "record"), render.Count(left)))
		} else {
			out = append(out, render.Plural(left, "record")+" behind")
		}
	}
	if v.RecordsPerSecond != nil && *v.RecordsPerSecond > 0 {
		out = append(out, render.Rate(v.RecordsPerSecond))
	}
	if v.ETASeconds != nil && *v.ETASeconds > 0 {
		out = append(out, "ETA "+render.Seconds(v.ETASeconds))
	}
	return out
}
