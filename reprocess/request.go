package reprocess

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Verb is an act that a person asks for.
type Verb string

// The verbs of a request.
const (
	Promote  Verb = "promote"
	Rollback Verb = "rollback"
	Abort    Verb = "abort"
	Pause    Verb = "pause"
	Resume   Verb = "resume"
	Retire   Verb = "retire"
	Drop     Verb = "drop"
	Adopt    Verb = "adopt"
)

// Request is an act that a person asks for; any agent does it and answers.
type Request struct {
	Job job.Name
	// Number is the version the act is about: what to promote, what to roll back to, what to abort, pause, resume, retire.
	// An act on the whole job has none.
	Number job.Number
	Verb   Verb
	Args   Args
	By     string
}

// Args are the flags of a request.
type Args struct {
	LiveIsDown           bool   `json:"live_is_down,omitempty"`     // promote: no barrier, live does not move
	IgnoreSnapshots      bool   `json:"ignore_snapshots,omitempty"` // promote, rollback: readers with an open snapshot may see counters fall
	AcceptShorterHistory string `json:"accept_shorter_history,omitempty"`
	Stale                bool   `json:"stale,omitempty"`     // rollback: to a version that is behind
	Now                  bool   `json:"now,omitempty"`       // retire: inside the rollback window
	KeepView             bool   `json:"keep_view,omitempty"` // drop: the view and the table it reads stay
	// adopt: what stands there, and whether what cannot follow to the view may stay with the table.
	View            *job.ViewName `json:"view,omitempty"`
	LeaveDependants bool          `json:"leave_dependants,omitempty"`
	AcceptGap       []Gap         `json:"accept_gap,omitempty"` // resume: go on behind these
}

// Gap is a range of offsets of one partition that the log no longer holds.
type Gap struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"` // exclusive
}

func (g Gap) String() string { return fmt.Sprintf("%s/%d:%d-%d", g.Topic, g.Partition, g.From, g.To) }

// Answer is what became of a request.
type Answer struct {
	Code job.ExitCode `json:"exit_code"`
	Text string       `json:"text"`
	Next string       `json:"next"` // the next command; may be empty
}

// Ask writes a request and returns its id.
func (s *Store) Ask(ctx context.Context, r Request) (int64, error) {
	var id int64
	err := s.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := askable(ctx, tx, r); err != nil {
			return err
		}
		var err error
		id, err = insertRequest(ctx, tx, r)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("ask to %s %s: %w", r.Verb, r.Job, err)
	}
	return id, nil
}

// askable refuses an act on what is not there.
func askable(ctx context.Context, tx *pg.Tx, r Request) error {
	if r.Verb == Adopt {
		return nil // the job begins with it
	}
	if r.Verb.ofJob() {
		_, err := lockJob(ctx, tx, r.Job)
		return err
	}
	_, err := readVersion(ctx, tx, job.Ref{Job: r.Job, Number: r.Number})
	return err
}

// ofJob says that the act is about a job and not about one of its versions.
func (v Verb) ofJob() bool { return v == Drop || v == Adopt }

// Answer is the answer to a request, or nil while there is none.
func (s *Store) Answer(ctx context.Context, id int64) (*Answer, error) {
	return readAnswer(ctx, s.pool, id)
}

// Resolve finds the version that a verb without one is about. When there is none, or more than one, the error is a
// *job.Refusal that says what there is. For rollback it is the version that readers would go back to.
func (s *Store) Resolve(ctx context.Context, name job.Name, verb Verb) (job.Ref, error) {
	st, err := readJobVersions(ctx, s.pool, name)
	if err != nil {
		return job.Ref{}, err
	}
	var found []job.Ref
	for _, v := range st.versions {
		if verb.Takes(v.Phase, v.Paused) {
			found = append(found, job.Ref{Job: name, Number: job.Number(v.Number)})
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && verb == Rollback && st.previous != nil:
		for _, r := range found {
			if int(r.Number) == *st.previous {
				return r, nil
			}
		}
	case len(found) == 0:
		return job.Ref{}, nothingTo(name, verb, st)
	}
	return job.Ref{}, ambiguous(name, verb, found)
}

// Takes says that the verb, given without a version, may mean one in this phase.
func (v Verb) Takes(phase job.Phase, paused bool) bool {
	switch v {
	case Promote:
		return phase == job.Verified || phase == job.CaughtUp || phase == job.CatchingUp
	case Rollback, Retire:
		return phase == job.Standby
	case Abort:
		return candidate(phase)
	case Pause:
		return !paused && candidate(phase) // a standby that is paused is no way back: it has to be named
	case Resume:
		return paused
	case Drop, Adopt:
		return false // they are about the job
	}
	return false
}

func nothingTo(name job.Name, verb Verb, st jobVersions) error {
	phases, next := "", "kappactl status "+string(name)
	for _, v := range st.versions {
		if verb == Pause && v.Phase == job.Standby && !v.Paused {
			next = fmt.Sprintf("kappactl pause %s %s, if readers need not go back to it meanwhile", name, job.Number(v.Number))
		}
		if v.EndedAt == nil {
			phases += fmt.Sprintf(" %s is %s", job.Number(v.Number), v.Phase)
			if v.Paused {
				phases += " and paused"
			}
			phases += "."
		}
	}
	does := string(verb)
	if verb == Rollback {
		does = "roll back"
	}
	return refuse(job.ExitConflict, next, "job %q has no version to %s.%s", name, does, phases)
}

// answerOf turns a refusal into the answer to who asked.
func answerOf(err error) (Answer, bool) {
	var r *job.Refusal
	if errors.As(err, &r) {
		return Answer{Code: r.Code, Text: r.Cause, Next: r.Next}, true
	}
	return Answer{}, false
}
