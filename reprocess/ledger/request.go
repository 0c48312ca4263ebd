package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
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

	BatchRun      Verb = "batch_run"      // compute a batch generation and show it
	BatchCancel   Verb = "batch_cancel"   // end the run under way
	BatchRollback Verb = "batch_rollback" // show a kept generation

	ABStart   Verb = "ab_start"   // split readers between versions
	ABWeights Verb = "ab_weights" // change how many read each
	ABPause   Verb = "ab_pause"   // let everybody read the control
	ABResume  Verb = "ab_resume"
	ABStop    Verb = "ab_stop" // end it: everybody reads the live version
)

// OfBatch reports whether the act is about the batch layer of a version: batchlayer does it, not reprocess.
func (v Verb) OfBatch() bool { return v == BatchRun || v == BatchCancel || v == BatchRollback }

// OfExperiment reports whether the act is about the experiment of a job: abtest does it, not reprocess.
func (v Verb) OfExperiment() bool {
	return v == ABStart || v == ABWeights || v == ABPause || v == ABResume || v == ABStop
}

// ReadersNotice reports whether readers of a view could notice the act.
func (v Verb) ReadersNotice() bool {
	switch v {
	case Promote, Rollback, Retire, Drop, Adopt, BatchRollback, ABStart, ABWeights, ABPause, ABResume, ABStop:
		return true
	default:
		return false
	}
}

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
	// adopt: the existing object, and whether what cannot follow to the view may stay with the table.
	View            *job.ViewName `json:"view,omitempty"`
	LeaveDependants bool          `json:"leave_dependants,omitempty"`
	AcceptGap       []Gap         `json:"accept_gap,omitempty"`     // resume: go on behind these
	Full            bool          `json:"full,omitempty"`           // batch_run: compute from scratch
	AcceptChanges   bool          `json:"accept_changes,omitempty"` // batch_run: show it whatever has changed
	// AcceptLostDeletes of a batch_run: compute from an archive that may lack deletes.
	AcceptLostDeletes bool       `json:"accept_lost_deletes,omitempty"`
	Tick              *time.Time `json:"tick,omitempty"`       // batch_run: the time for which a schedule asked
	Generation        int        `json:"generation,omitempty"` // batch_rollback: the one to show
	// ab_start: the weights of the arms, the control among them (empty: live and the candidate, equally); ab_weights: all
	// of them.
	Weights  []job.ArmWeight `json:"weights,omitempty"`
	Coverage *float64        `json:"coverage,omitempty"` // ab_start: the share of subjects in the experiment; nil: as in the job file
	Assign   job.Assign      `json:"assign,omitempty"`   // ab_start; empty: as in the job file
	Accept   string          `json:"accept,omitempty"`   // ab_resume: why it goes on
	Because  reason.Reason   `json:"because,omitzero"`   // ab_stop: why an agent has asked for it
	// DryRun does everything up to the commit and rolls it back: the answer is that of the act, and nothing has changed.
	DryRun bool `json:"dry_run,omitempty"`
}

// Gap is a range of offsets of one partition that the log no longer holds.
type Gap struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"` // exclusive
}

func (g Gap) String() string { return fmt.Sprintf("%s/%d:%d-%d", g.Topic, g.Partition, g.From, g.To) }

// Answer is the outcome of a request.
type Answer struct {
	Code   job.ExitCode
	Reason reason.Reason
	Next   string // the next command; may be empty
}

// Text is the answer in English.
func (a Answer) Text() string { return a.Reason.Text() }

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

// AskWithin writes a request in a transaction and returns its id.
func AskWithin(ctx context.Context, tx *pg.Tx, r Request) (int64, error) {
	id, err := insertRequest(ctx, tx, r)
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
	if r.Verb.OfJob() {
		_, err := LockJob(ctx, tx, r.Job)
		return err
	}
	_, err := ReadVersion(ctx, tx, job.Ref{Job: r.Job, Number: r.Number})
	return err
}

// OfJob reports whether the act is about a job and not about one of its versions.
func (v Verb) OfJob() bool { return v == Drop || v == Adopt || v.OfExperiment() }

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
		if verb.Takes(v.Phase, v.Paused) || verb == Resume && v.Faulty {
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

// Takes reports whether the verb, given without a version, may mean one in this phase.
func (v Verb) Takes(phase job.Phase, paused bool) bool {
	switch v {
	case Promote:
		return phase == job.Verified || phase == job.CaughtUp || phase == job.CatchingUp
	case Rollback, Retire:
		return phase == job.Standby
	case Abort:
		return Candidate(phase)
	case Pause:
		return !paused && Candidate(phase) // a standby that is paused is no way back: it has to be named
	case Resume:
		return paused
	case BatchRun, BatchCancel, BatchRollback:
		return phase == job.Live
	case Drop, Adopt, ABStart, ABWeights, ABPause, ABResume, ABStop:
		return false // they are about the job
	}
	return false
}

func nothingTo(name job.Name, verb Verb, st JobVersions) error {
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
	switch {
	case verb == Rollback:
		does = "roll back"
	case verb.OfBatch():
		return Refuse(job.ExitConflict, next, "job %q has no live version.%s", name, phases)
	}
	return Refuse(job.ExitConflict, next, "job %q has no version to %s.%s", name, does, phases)
}

// AnswerOf turns a refusal into the answer to who asked.
func AnswerOf(err error) (Answer, bool) {
	var r *job.Refusal
	if errors.As(err, &r) {
		return Answer{Code: r.Code, Reason: reason.Of(r), Next: r.Next}, true
	}
	return Answer{}, false
}

func insertRequest(ctx context.Context, tx *pg.Tx, r Request) (int64, error) {
	args, err := json.Marshal(r.Args)
	if err != nil {
		return 0, fmt.Errorf("encode request: %w", err)
	}
	var id int64
	err = tx.QueryRow(ctx, `INSERT INTO kappactl.request (job, number, verb, args, by)
		VALUES (@job, @number, @verb, @args::jsonb, @by) RETURNING id`,
		pgx.NamedArgs{
			"job": string(r.Job), "number": int(r.Number), "verb": string(r.Verb), "args": string(args),
			"by": r.By,
		}).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("write request: %w", err)
	}
	return id, nil
}

func readAnswer(ctx context.Context, db pg.DB, id int64) (*Answer, error) {
	var a Answer
	var code *int
	err := db.QueryRow(ctx, `SELECT exit_code, answer, next_command FROM kappactl.request WHERE id = @id`,
		pgx.NamedArgs{"id": id}).Scan(&code, &a.Reason, &a.Next)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("request %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read answer %d: %w", id, err)
	}
	if code == nil {
		return nil, nil //nolint:nilnil // no answer yet is not an error
	}
	a.Code = job.ExitCode(*code)
	return &a, nil
}

// RequestRow is a request under a claim.
type RequestRow struct {
	ID     int64
	Job    string
	Number int
	Verb   Verb
	Args   string
	By     string
	Role   string // the database role of By
	At     time.Time
}

// readRequest reads an open request; ErrLost when it is answered or somebody else claimed it.
func readRequest(ctx context.Context, db pg.DB, id, claim int64) (RequestRow, error) {
	rows, err := pg.Structs[RequestRow](ctx, db, `SELECT id, job, number, verb, args::text AS args, by, session_role AS role, at FROM kappactl.request
		WHERE id = @id AND claim = @claim AND answered_at IS NULL`, pgx.NamedArgs{"id": id, "claim": claim})
	if err != nil {
		return RequestRow{}, fmt.Errorf("read request %d: %w", id, err)
	}
	if len(rows) == 0 {
		return RequestRow{}, ErrLost
	}
	return rows[0], nil
}

// WriteAnswer answers a request; ErrLost when it is answered or somebody else claimed it.
func WriteAnswer(ctx context.Context, db pg.DB, id, claim int64, a Answer) error {
	tag, err := db.Exec(ctx, `UPDATE kappactl.request SET exit_code = @code, answer = @answer, next_command = @next,
			answered_at = clock_timestamp(), owner = NULL, lease = NULL, trouble = '{}'
		WHERE id = @id AND claim = @claim AND answered_at IS NULL`,
		pgx.NamedArgs{"id": id, "claim": claim, "code": int(a.Code), "answer": a.Reason, "next": a.Next})
	if err != nil {
		return fmt.Errorf("answer request %d: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrLost
	}
	return nil
}

// NoteTrouble notes why a request is tried again or what it waits for; the zero Reason: nothing any more. One that the
// actor no longer holds, and an actor without a request, are left alone.
func (a Actor) NoteTrouble(ctx context.Context, db pg.DB, why reason.Reason) error {
	_, err := db.Exec(ctx, `UPDATE kappactl.request SET trouble = @why::jsonb
		WHERE id = @id AND claim = @claim AND answered_at IS NULL AND trouble <> @why::jsonb`,
		pgx.NamedArgs{"id": a.Request, "claim": a.Claim, "why": why})
	return Wrap(err, "note the trouble of request %d", a.Request)
}

// Trouble is why an open request is tried again or what it waits for; zero: nothing.
func Trouble(ctx context.Context, db pg.DB, id int64) (why reason.Reason, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce((SELECT trouble FROM kappactl.request WHERE id = @id), '{}')`,
		pgx.NamedArgs{"id": id}).Scan(&why)
	return why, Wrap(err, "read the trouble of request %d", id)
}
