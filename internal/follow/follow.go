// Package follow prints what happens to versions as it happens: one schema of events for programs and one line of text
// for people, for the commands that wait for a deployment and for `watch` without a terminal.
package follow

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// Slow is the time between lines of progress where people read them later, and where there is none to report.
const Slow = 10 * time.Second

// warnedFor is how long a warning must be gone before it is printed again.
const warnedFor = time.Minute

// Version is one version at one moment.
type Version struct {
	Job   job.Name
	State job.DeploymentState // of its open deployment; empty: none
	Note  string              // printed behind the text
	status.Version
	// Followed reports that somebody waits for this version: its verdict and its progress are printed in every phase.
	Followed bool
}

func (v Version) watched() bool { return v.Followed || ledger.Candidate(v.Phase) }

func (v Version) name() string { return string(v.Job) + "/" + v.Version.Version }

// Config is how lines are printed.
type Config struct {
	Out   io.Writer
	JSON  bool          // one object a line
	Stamp bool          // text begins with the time
	Every time.Duration // between lines of progress, over all versions
}

// Follower prints what changed between two queries. Its owner is the goroutine of the command.
type Follower struct {
	Config
	seen     map[string]*seen
	warned   map[string]time.Time // when a warning was seen last, by its key
	events   map[int64]bool       // printed
	newest   int64                // event
	progress time.Time            // when it was printed last
	err      error                // of the first line that could not be printed
}

// seen is the last known state of a version.
type seen struct {
	phase    job.Phase
	phaseAt  time.Time // of the newest change of phase in the history
	state    job.DeploymentState
	paused   bool
	verdict  job.Verdict
	amounts  progress
	text     string
	progress time.Time // when its last line of text or progress was printed
}

// New returns a follower that has seen nothing.
func New(c Config) *Follower {
	return &Follower{Config: c, seen: map[string]*seen{}, warned: map[string]time.Time{}, events: map[int64]bool{}}
}

// Err is the error of the first line that could not be printed.
func (f *Follower) Err() error { return f.err }

func (f *Follower) line(v any) { f.failed(render.Line(f.Out, v)) }

func (f *Follower) failed(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *Follower) text(at time.Time, text string) {
	if f.Stamp {
		text = at.UTC().Format(time.RFC3339) + " " + text
	}
	_, err := fmt.Fprintln(f.Out, text)
	f.failed(err)
}

func head(at time.Time, kind Kind, name job.Name, version string) about {
	return about{NewHead(at, kind), name, version}
}

// NewHead returns the head of a line.
func NewHead(at time.Time, kind Kind) Head { return Head{at.UTC(), kind} }

// Start prints the first line for programs. past are events before it, which are not printed; deployment is 0 when all
// are followed.
func (f *Follower) Start(now time.Time, v Version, deployment int64, resumed bool, past []ledger.PastEvent) {
	if !f.JSON {
		return
	}
	f.line(start{head(now, KindStart, v.Job, v.Version.Version), Schema, deployment, v.Phase, resumed})
	if deployment != 0 {
		f.seen[v.name()] = &seen{phase: v.Phase, state: v.State, paused: v.Paused, verdict: v.Verdict}
	}
	for _, e := range past {
		f.isNew(e)
	}
}

// lookBack is how far below the newest event's id a look begins: see ledger.Store.DeploymentEvents.
const lookBack = 1000

// Since is the id of the event behind which the next look begins.
func (f *Follower) Since() int64 { return max(0, f.newest-lookBack) }

func (f *Follower) isNew(e ledger.PastEvent) bool {
	if f.events[e.ID] {
		return false
	}
	f.events[e.ID], f.newest = true, max(f.newest, e.ID)
	return true
}

// See prints what changed since the last look: changes at once, and at most one line of progress in Every, of the
// version whose last one is the oldest. events are those of the deployment that is followed.
func (f *Follower) See(now time.Time, versions []Version, events []ledger.PastEvent) {
	for _, e := range events {
		if f.isNew(e) {
			f.happened(e)
		}
	}
	var slowest *Version
	for i, v := range versions {
		if changed := f.changes(now, v); !changed && v.watched() &&
			(slowest == nil || f.seen[v.name()].progress.Before(f.seen[slowest.name()].progress)) {
			slowest = &versions[i]
		}
		for _, r := range v.WarningReasons {
			f.Warn(now, v.Job, v.Version.Version, r)
		}
	}
	if f.progress.IsZero() && !f.JSON {
		f.progress = now // the first look has just printed a line for each
	}
	if slowest != nil && now.Sub(f.progress) >= f.every(*slowest) {
		f.advance(now, *slowest)
	}
}

// every is the time between two lines of progress. Holding still is no progress, so it is reported less often.
func (f *Follower) every(v Version) time.Duration {
	if v.Verdict == job.Holding && !f.JSON {
		return Slow
	}
	return f.Every
}

// changes prints what is new about a version, and reports whether anything was. A version that has ended before it was
// first seen is no news.
func (f *Follower) changes(now time.Time, v Version) bool {
	s, known := f.seen[v.name()]
	if !known {
		s = &seen{}
		f.seen[v.name()] = s
	}
	if v.PhaseSince.Before(s.phaseAt) {
		v.Phase = s.phase // it was read before the history was
	}
	moved := v.Phase != s.phase || v.State != s.state || v.Paused != s.paused
	judged := v.Verdict != s.verdict && v.watched()
	s.phase, s.state, s.paused, s.verdict = v.Phase, v.State, v.Paused, v.Verdict
	switch {
	case !known && v.Phase.Ended() && !v.Followed, !moved && !judged:
		return false
	case !f.JSON:
		f.progress = now
		f.say(now, s, v)
		return true
	}
	if moved {
		f.line(phase{head(now, KindPhase, v.Job, v.Version.Version), v.Phase, v.State, v.Paused, v.Error, v.ErrorCode})
	}
	if judged {
		f.line(verdict{head(now, KindVerdict, v.Job, v.Version.Version), v.Verdict, v.Reason, v.ReasonCode})
	}
	return false // numbers follow
}

// say prints the line of a version, unless it says what the last one said.
func (f *Follower) say(now time.Time, s *seen, v Version) {
	s.progress = now
	if text := v.Text(); text != s.text {
		s.text = text
		f.text(now, text)
	}
}

// advance prints how far a version is.
func (f *Follower) advance(now time.Time, v Version) {
	s := f.seen[v.name()]
	if !f.JSON {
		f.progress = now
		f.say(now, s, v)
		return
	}
	p := progress{
		head(now, KindProgress, v.Job, v.Version.Version),
		v.Records, v.LagRecords, v.LagSeconds, v.RecordsPerSecond, v.ETASeconds,
	}
	if p.moved(s.amounts) {
		f.progress, s.progress, s.amounts = now, now, p
		f.line(p)
	}
}

// happened prints one event of the history. A change of phase that a look would miss, because the next came right after
// it, is printed with the time at which it was.
func (f *Follower) happened(e ledger.PastEvent) {
	var detail struct {
		To     job.Phase       `json:"to"`
		Checks []checks.Result `json:"checks"`
	}
	_ = json.Unmarshal(e.Detail, &detail) // an event whose detail is of another form has neither
	version := ""
	if e.Version != nil {
		version = *e.Version
	}
	s := f.seen[string(e.Job)+"/"+version]
	switch {
	case e.Kind == ledger.EventPhase:
		if s != nil && detail.To != "" && detail.To != s.phase {
			s.phase, s.phaseAt = detail.To, e.At
			f.line(phase{head(e.At, KindPhase, e.Job, version), s.phase, s.state, s.paused, "", ""})
		}
	case len(detail.Checks) > 0: // before the flip all of a run, after it one
		for _, c := range detail.Checks {
			f.line(check{head(e.At, KindCheck, e.Job, version), c.Name, string(c.Outcome), c.Detail.Text(), c.Detail.Code})
		}
	case e.Kind == ledger.EventWarning:
		f.Warn(e.At, e.Job, version, e.Reason)
	default:
		f.line(event{head(e.At, KindEvent, e.Job, version), string(e.Kind), e.Message, e.MessageCode, e.Detail, e.By})
	}
}

// Warn prints a warning that was not seen in the last minute. One whose numbers changed is the same.
func (f *Follower) Warn(at time.Time, name job.Name, version string, r reason.Reason) {
	key := string(name) + "/" + version + ": " + r.Key()
	last, known := f.warned[key]
	f.warned[key] = at
	if known && at.Sub(last) < warnedFor {
		return
	}
	f.Notice(at, name, version, r.Text(), r.Code)
}

// Notice prints a warning, of the command itself when code is empty.
func (f *Follower) Notice(at time.Time, name job.Name, version, text string, code reason.Code) {
	if f.JSON {
		f.line(warning{head(at, KindWarning, name, version), text, code})
		return
	}
	if version != "" {
		version += " "
	}
	f.text(at, fmt.Sprintf("%s %swarning: %s", name, version, flat(text)))
}
