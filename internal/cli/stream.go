package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// streamSchema is raised when a field of the event stream changes its meaning; new fields and kinds do not raise it.
const streamSchema = 1

// streamHead is what every line of the event stream has.
type streamHead struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // start, phase, verdict, progress, check, warning, event or end
}

type streamStart struct {
	streamHead
	Schema     int       `json:"schema"`
	Job        job.Name  `json:"job"`
	Version    string    `json:"version"`
	Deployment int64     `json:"deployment"`
	Phase      job.Phase `json:"phase"`
	Resumed    bool      `json:"resumed"`
}

type streamPhase struct {
	streamHead
	Phase  job.Phase           `json:"phase"`
	State  job.DeploymentState `json:"state"`
	Paused bool                `json:"paused"`
}

type streamVerdict struct {
	streamHead
	Verdict    job.Verdict `json:"verdict"`
	Reason     string      `json:"reason"`
	ReasonCode reason.Code `json:"reason_code"`
}

type streamProgress struct {
	streamHead
	Records          int64    `json:"records"`
	LagRecords       *int64   `json:"lag_records"`
	LagSeconds       *float64 `json:"lag_seconds"`
	RecordsPerSecond *float64 `json:"records_per_second"`
	ETASeconds       *float64 `json:"eta_seconds"`
}

type streamCheck struct {
	streamHead
	Check      string      `json:"check"`
	Outcome    string      `json:"outcome"`
	Detail     string      `json:"detail"`
	DetailCode reason.Code `json:"detail_code"`
}

type streamWarning struct {
	streamHead
	Message     string      `json:"message"`
	MessageCode reason.Code `json:"message_code"` // empty where the warning is the command's
}

type streamEvent struct {
	streamHead
	Event       string          `json:"event"`
	Message     string          `json:"message"`
	MessageCode reason.Code     `json:"message_code"`
	Detail      json.RawMessage `json:"detail"`
	By          string          `json:"by"`
}

type streamEnd struct {
	streamHead
	deployResult
}

// streams says that deploy and wait print events as they happen.
func (a *app) streams() bool { return a.flags.output.value == string(render.FormatLines) }

// stream prints a deployment as JSON Lines. Its owner is the goroutine of the command.
type stream struct {
	*app
	client   *client
	began    bool
	newest   int64 // event
	seen     map[int64]bool
	last     ledger.Deployment
	phaseAt  time.Time // of the newest change of phase in the history
	progress time.Time // when it was printed last
	amounts  streamProgress
	err      error // of the first line that could not be printed
}

func newStream(a *app, c *client) *stream { return &stream{app: a, client: c, seen: map[int64]bool{}} }

func (s *stream) line(v any) {
	if err := render.Line(s.out(), v); s.err == nil {
		s.err = err
	}
}

func (s *stream) head(kind string, at time.Time) streamHead {
	return streamHead{At: at.UTC(), Kind: kind}
}

// start prints the first line. Events before it are those of the deployment's past: a command that comes back skips them.
func (s *stream) start(ctx context.Context, d ledger.Deployment, resumed bool) {
	s.began, s.last = true, d
	s.line(streamStart{
		s.head("start", s.sys.Now()), streamSchema, d.Job, d.Number.String(), d.ID, d.Phase, resumed,
	})
	if !resumed {
		return
	}
	past, err := s.client.store.DeploymentEvents(ctx, d.ID, 0)
	if err != nil {
		return // they are printed then, with the times at which they were
	}
	for _, e := range past {
		s.seen[e.ID], s.newest = true, max(s.newest, e.ID)
	}
}

// lookBack is how far below the newest event's id a look begins: see reprocess.Store.DeploymentEvents.
const lookBack = 1000

// look prints what happened since the last look.
func (s *stream) look(ctx context.Context, d ledger.Deployment) {
	events, err := s.client.store.DeploymentEvents(ctx, d.ID, max(0, s.newest-lookBack))
	if err == nil {
		for _, e := range events {
			if !s.seen[e.ID] {
				s.seen[e.ID], s.newest = true, max(s.newest, e.ID)
				s.happened(e)
			}
		}
	}
	d = s.phaseOf(d)
	if d.Phase != s.last.Phase || d.State != s.last.State || d.Paused != s.last.Paused {
		s.line(streamPhase{s.head("phase", s.sys.Now()), d.Phase, d.State, d.Paused})
	}
	if d.Verdict != s.last.Verdict {
		s.line(streamVerdict{s.head("verdict", s.sys.Now()), d.Verdict, d.Reason.Text(), d.Reason.Code})
	}
	s.last = d
	s.amount(ctx, d)
}

// phaseOf is d with the phase of the history when d was read before the history was.
func (s *stream) phaseOf(d ledger.Deployment) ledger.Deployment {
	if d.PhaseSince.Before(s.phaseAt) {
		d.Phase = s.last.Phase
	}
	return d
}

// happened prints one event of the history. A change of phase that a look would miss, because the next came right after it, is
// printed with the time at which it was.
func (s *stream) happened(e ledger.PastEvent) {
	var detail struct {
		To     job.Phase       `json:"to"`
		Checks []checks.Result `json:"checks"`
	}
	_ = json.Unmarshal(e.Detail, &detail) // an event whose detail is of another form has neither
	switch {
	case e.Kind == ledger.EventPhase:
		if detail.To != "" && detail.To != s.last.Phase {
			s.line(streamPhase{s.head("phase", e.At), detail.To, s.last.State, s.last.Paused})
			s.last.Phase, s.phaseAt = detail.To, e.At
		}
	case len(detail.Checks) > 0: // before the flip all of a run, after it one
		for _, c := range detail.Checks {
			s.line(streamCheck{s.head("check", e.At), c.Name, string(c.Outcome), c.Detail.Text(), c.Detail.Code})
		}
	case e.Kind == ledger.EventWarning:
		s.line(streamWarning{s.head("warning", e.At), e.Message, e.MessageCode})
	default:
		s.line(streamEvent{s.head("event", e.At), string(e.Kind), e.Message, e.MessageCode, e.Detail, e.By})
	}
}

// amount prints how far it is, at most once a second, and only when that changed.
func (s *stream) amount(ctx context.Context, d ledger.Deployment) {
	now := s.sys.Now()
	if now.Sub(s.progress) < time.Second {
		return
	}
	status, err := s.client.store.Status(ctx, d.Job)
	if err != nil {
		return
	}
	v, err := versionOf(status, d.Number)
	if err != nil {
		return
	}
	p := streamProgress{Records: d.Records, LagRecords: v.LagRecords, LagSeconds: v.LagSeconds, RecordsPerSecond: v.RecordsPerSecond, ETASeconds: v.ETASeconds}
	if p.same(s.amounts) {
		return
	}
	s.progress, s.amounts = now, p
	p.streamHead = s.head("progress", now)
	s.line(p)
}

func (p streamProgress) same(q streamProgress) bool {
	return p.Records == q.Records && equal(p.LagRecords, q.LagRecords) && equal(p.LagSeconds, q.LagSeconds)
}

func equal[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return *a == *b
}

// warn prints a warning of the command itself.
func (s *stream) warn(text string) { s.line(streamWarning{s.head("warning", s.sys.Now()), text, ""}) }

// end prints the last line.
func (a *app) end(r deployResult) error {
	return render.Line(a.out(), streamEnd{streamHead{a.sys.Now().UTC(), "end"}, r})
}

// printed prints what deploy and wait end with: in a stream as its last line.
func (a *app) printed(r deployResult) error {
	if a.streams() {
		return a.end(r)
	}
	return a.result(r, r.print)
}
