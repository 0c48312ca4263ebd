package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/follow"
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

// flipped reports whether the goal lies behind the flip.
func (g goal) flipped() bool { return g == goalLive || g == goalSettled }

const (
	followEvery      = 200 * time.Millisecond
	watchEvery       = time.Second
	progressTerminal = time.Second
)

// follower prints what happens to one deployment, or to what `watch` shows, and returns when the deployment is as far
// as goal or can no longer get there.
type follower struct {
	*app
	client     *client
	deployment int64 // 0: of a watch
	watch      *watchUIOptions
	goal       goal
	resumed    bool   // it was under way before this command
	reportDir  string // empty: no report
	began      time.Time

	lines   *follow.Follower
	started bool           // the first line is printed
	version status.Version // of the deployment, as read at readAt
	readAt  time.Time
	last    ledger.Deployment
}

// took is how long the command has taken so far, in seconds to the millisecond.
func (f *follower) took() float64 {
	return math.Round(f.sys.Now().Sub(f.began).Seconds()*1000) / 1000
}

// config is how lines are printed: objects and those of a watch are results, the text of other commands is progress.
func (f *follower) config() follow.Config {
	switch {
	case f.watch != nil:
		return follow.Config{Out: f.out(), JSON: f.streams(), Stamp: true, Every: follow.Slow}
	case f.streams():
		return follow.Config{Out: f.out(), JSON: true, Every: time.Second}
	case f.flags.quiet:
		return follow.Config{Out: io.Discard, Every: follow.Slow}
	case f.sys.ErrTTY:
		return follow.Config{Out: told{f.app}, Every: progressTerminal}
	}
	return follow.Config{Out: told{f.app}, Every: follow.Slow}
}

// told is the error stream as a writer. A person who is gone does not end the command.
type told struct{ *app }

func (t told) Write(line []byte) (int, error) {
	t.tell("%s", line)
	return len(line), nil
}

// run returns the deployment as it then is and the exit code.
func (f *follower) run(ctx context.Context) (ledger.Deployment, job.ExitCode, error) {
	w := newPatience(f.app, f.client)
	f.lines = follow.New(f.config())
	look, every := f.followed, followEvery
	if f.watch != nil {
		look, every = f.watched, watchEvery
	}
	if f.streams() {
		w.noticed = func(text string) { f.lines.Notice(f.sys.Now(), f.last.Job, "", text, "") }
	}
	for {
		versions, err := look(ctx)
		if err == nil {
			f.print(ctx, versions)
			if err := f.lines.Err(); err != nil { // the reader is gone
				return f.last, job.ExitFailed, withNext(err, f.comeBack(f.last))
			}
			if code, done := f.last.Outcome(string(f.goal)); done {
				return f.last, code, nil
			}
		}
		if err := w.pause(ctx, every, err); err != nil {
			return f.last, job.ExitFailed, f.broken(ctx, withNext(err, f.comeBack(f.last)))
		}
	}
}

// broken ends the stream of a command that stops looking: the deployment goes on.
func (f *follower) broken(ctx context.Context, err error) error {
	if !f.streams() || !f.started {
		return err
	}
	e, d := explain(ctx, err), f.last
	return errors.Join(err, f.end(f.failed(ctx, deployResult{
		Job: d.Job, Version: versionText(d), Deployment: d.ID, Phase: d.Phase, ExitCode: e.Code, Records: d.Records,
		Seconds: f.took(), Resumed: f.resumed, Message: strings.Join(e.Causes, "; "), Next: e.Next,
	}, err)))
}

func versionText(d ledger.Deployment) string {
	if d.ID == 0 {
		return ""
	}
	return d.Number.String()
}

// followed reads the deployment that a command waits for.
func (f *follower) followed(ctx context.Context) ([]follow.Version, error) {
	d, err := f.client.store.Deployment(ctx, f.deployment)
	if err != nil {
		return nil, err
	}
	before, now := f.last, f.sys.Now()
	f.last = d
	if d.Phase != before.Phase || d.Verdict != before.Verdict || now.Sub(f.readAt) >= time.Second {
		if s, err := f.client.store.Status(ctx, d.Job); err == nil { // else the lines have the numbers of the last look
			if v, err := versionOf(s, d.Number); err == nil {
				f.version, f.readAt = *v, now
			}
		}
	}
	return []follow.Version{f.overlaid(d)}, nil
}

// overlaid is the version as its status was read, with what the deployment knows better.
func (f *follower) overlaid(d ledger.Deployment) follow.Version {
	v := follow.Version{Job: d.Job, State: d.State, Version: f.version, Followed: true}
	v.Version.Version, v.Phase, v.PhaseSince, v.Paused, v.Records = d.Number.String(), d.Phase, d.PhaseSince, d.Paused,
		d.Records
	v.Verdict, v.Reason, v.ReasonCode = d.Verdict, d.Reason.Text(), d.Reason.Code
	v.Error, v.ErrorCode = d.VersionError, d.VersionErrorCode
	if d.State == job.Observing { // why readers are not taken back
		v.Note, _, _ = strings.Cut(d.Message, "\n")
	}
	if !f.streams() {
		v.WarningReasons = nil // the result has the one that matters
	}
	return v
}

// watched reads the job that is watched with its newest deployment, or every job.
func (f *follower) watched(ctx context.Context) ([]follow.Version, error) {
	if f.watch.job == "" {
		jobs, err := f.client.store.Jobs(ctx)
		return versionsOf(jobs...), err
	}
	s, err := f.client.store.Status(ctx, f.watch.job)
	if err != nil {
		return nil, err
	}
	d, err := f.client.store.Newest(ctx, f.watch.job)
	if err == nil && d != nil {
		f.last = *d
	}
	return versionsOf(s), err
}

// versionsOf returns the versions of jobs. What is about a job is a version without a phase.
func versionsOf(jobs ...status.Job) []follow.Version {
	var out []follow.Version
	for _, s := range jobs {
		states := map[string]job.DeploymentState{}
		for _, d := range s.Deployments {
			states[d.Version] = d.State
		}
		for _, v := range s.Versions {
			out = append(out, follow.Version{Job: s.Job, State: states[v.Version], Version: v})
		}
		if len(s.WarningReasons) > 0 {
			out = append(out, follow.Version{Job: s.Job, Version: status.Version{WarningReasons: s.WarningReasons}})
		}
	}
	return out
}

// print prints what is new. A stream has the history of the deployment, too: a command that comes back skips what was
// before it.
func (f *follower) print(ctx context.Context, versions []follow.Version) {
	var events []ledger.PastEvent
	if f.streams() && f.last.ID != 0 {
		events, _ = f.client.store.DeploymentEvents(ctx, f.last.ID, f.lines.Since()) // else with the next look
	}
	if !f.started {
		f.started = true
		first := follow.Version{}
		if f.last.ID != 0 {
			first = f.overlaid(f.last)
		}
		var past []ledger.PastEvent
		if f.resumed {
			past, events = events, nil
		}
		f.lines.Start(f.sys.Now(), first, f.last.ID, f.resumed, past)
	}
	f.lines.See(f.sys.Now(), versions, events)
}

func (f *follower) comeBack(d ledger.Deployment) string {
	if f.watch != nil {
		return f.watch.again()
	}
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

// streams reports whether deploy, wait and watch print events as they happen.
func (a *app) streams() bool { return a.flags.output.value == string(render.FormatLines) }

type streamEnd struct {
	follow.Head
	deployResult
}

// end prints the last line of a stream.
func (a *app) end(r deployResult) error {
	return render.Line(a.out(), streamEnd{follow.NewHead(a.sys.Now(), follow.KindEnd), r})
}

// printed prints what deploy and wait end with: in a stream as its last line.
func (a *app) printed(r deployResult) error {
	a.current().summary = firstLine(r.Message)
	if a.streams() {
		return a.end(r)
	}
	return a.result(r, r.print)
}
