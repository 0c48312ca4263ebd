package reprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Staging is what `deploy` wants to become live.
type Staging struct {
	Spec    *job.Spec
	Layout  job.Layout
	Hash    string // of what changes the output, 12 hex digits
	Dialect int
	Engine  string
	// Promote overrides the job file; empty: the job file's, else auto for a job's first version and manual later.
	Promote job.PromoteMode
	// Until is where the deployment stops by itself: staged, caught_up, verified, live or empty.
	Until                string
	Again                bool   // a hash that was rolled back may go live again
	AllowColumnChange    bool   // the view may get columns
	AcceptShorterHistory string // token of the loss that is accepted
	By                   string
	GitRevision          string
	ClusterID            string // Kafka's
	File                 string // the job file's text
	// Views checks the view's contract before anything is replayed; nil leaves it to the controller.
	Views Views
}

// Staged is what Stage did.
type Staged struct {
	Job        job.Name
	Number     job.Number
	Deployment int64
	Nothing    bool // this hash is live, and the file says nothing else either
	Resumed    bool // this hash is rolling out or waiting already
	FlipOnly   bool // this hash is standby or live: nothing is replayed
	Live       bool // this hash is live
	// Applied are the keys of the file that changed beside the hash. Without FlipOnly and Resumed they are in force already.
	Applied []string
}

// options are the deployment's options column.
type options struct {
	AllowColumnChange    bool   `json:"allow_column_change,omitempty"`
	AcceptShorterHistory string `json:"accept_shorter_history,omitempty"`
	LiveIsDown           bool   `json:"live_is_down,omitempty"`
	IgnoreSnapshots      bool   `json:"ignore_snapshots,omitempty"`
	Apply                *wish  `json:"apply,omitempty"`
}

// Stage writes what `deploy` wants: a new version and its deployment, or a deployment that only flips, or nothing.
// A controller does the rest. Errors that a person has to act on are *job.Refusal; nothing is written then.
func (s *Store) Stage(ctx context.Context, in Staging) (Staged, error) {
	return s.staging(ctx, in, nil)
}

// Rehearse is Stage in a transaction that is rolled back: what it would do, or why it would refuse. The deployment's id means
// nothing.
func (s *Store) Rehearse(ctx context.Context, in Staging) (Staged, error) {
	return s.staging(ctx, in, errPlanned)
}

// staging stages in a transaction that ends with end.
func (s *Store) staging(ctx context.Context, in Staging, end error) (Staged, error) {
	var out Staged
	err := s.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		j, err := lockJobFor(ctx, tx, in)
		if err != nil {
			return err
		}
		if err := checkView(ctx, tx, in, j); err != nil {
			return err
		}
		if out, err = stage(ctx, tx, in, j); err != nil {
			return err
		}
		return end
	})
	if err != nil && !errors.Is(err, errPlanned) {
		return Staged{}, fmt.Errorf("stage %s: %w", in.Spec.Job, err)
	}
	return out, nil
}

// lockJobFor makes the job's row when it is new and locks it.
func lockJobFor(ctx context.Context, tx *pg.Tx, in Staging) (jobRow, error) {
	name, view := in.Spec.Job, in.Spec.Serve.View
	owner, err := viewOwner(ctx, tx, view)
	if err != nil {
		return jobRow{}, err
	}
	if owner != "" && owner != string(name) {
		return jobRow{}, refuse(job.ExitConflict, "choose another serve.view", "view %s belongs to job %q", view, owner)
	}
	if err := insertJob(ctx, tx, in); err != nil {
		if pg.Code(err) == uniqueViolation {
			return jobRow{}, refuse(job.ExitConflict, "choose another serve.view", "view %s belongs to another job", view)
		}
		return jobRow{}, err
	}
	j, err := lockJob(ctx, tx, name)
	if err != nil {
		return jobRow{}, err
	}
	if j.DroppingAt != nil {
		return jobRow{}, refuse(job.ExitConflict, fmt.Sprintf("kappactl drop %s, which waits until it is gone", name), "job %q is being dropped", name)
	}
	if j.view() != view {
		return jobRow{}, refuse(job.ExitConflict, "keep serve.view, or deploy under another job name",
			"job %q serves view %s and the file says %s: a job keeps its view", name, j.view(), view)
	}
	if j.ClusterID != "" && in.ClusterID != "" && j.ClusterID != in.ClusterID {
		return jobRow{}, refuse(job.ExitConflict, "check --brokers and the context in use",
			"job %q reads Kafka cluster %s and these brokers are cluster %s: its offsets mean nothing there", name, j.ClusterID, in.ClusterID)
	}
	return j, nil
}

// checkView refuses a candidate whose columns the view cannot take, and a name that something else has.
func checkView(ctx context.Context, db pg.DB, in Staging, j jobRow) error {
	if in.Views == nil {
		return nil
	}
	return viewFits(ctx, db, in.Views, j, in.Layout, in.AllowColumnChange)
}

// viewFits is checkView for stage and for the controller, which looks again before it replays.
func viewFits(ctx context.Context, db pg.DB, views Views, j jobRow, l job.Layout, allow bool) error {
	if len(j.contract()) > 0 {
		return views.Check(j.contract(), l, allow)
	}
	kind, err := views.Taken(ctx, db, j.view())
	if err != nil {
		return err
	}
	if kind == "" {
		return nil
	}
	from := "kappactl did not make"
	if kept, err := keptBy(ctx, db, j); err != nil {
		return err
	} else if kept != "" {
		from = fmt.Sprintf("job %s left when it was dropped with --keep-view", kept)
	}
	next := job.AdoptCommand(job.Name(j.Name), j.view()) + "   # readers keep it, and see the new version after its promote; or choose another serve.view"
	if !adoptableKind(kind) {
		next = "choose another serve.view, or rename what is there"
	}
	return refuse(job.ExitConflict, next, "%s is a %s that %s", j.view(), kind, from)
}

func stage(ctx context.Context, tx *pg.Tx, in Staging, j jobRow) (Staged, error) {
	open, err := openDeployments(ctx, tx, j.Name)
	if err != nil {
		return Staged{}, err
	}
	same, err := sameHash(ctx, tx, j.Name, in.Hash)
	if err != nil {
		return Staged{}, err
	}
	if live, ok := same.live(j); ok {
		return keepLive(ctx, tx, in, j, live, open)
	}
	for _, d := range open {
		if same.has(d.Number) {
			return resume(ctx, tx, in, j, d, open)
		}
	}
	if err := otherRollingOut(j.Name, 0, open); err != nil {
		return Staged{}, err
	}
	if same.rolledBack() && !in.Again {
		return Staged{}, refuse(job.ExitConflict, "kappactl deploy FILE --again",
			"this version of %s was rolled back (%s); deploying it again would flip readers back to it", j.Name, same.rolledBackNumber())
	}
	if standby, ok := same.standby(); ok {
		return flipAgain(ctx, tx, in, j, standby)
	}
	return stageNew(ctx, tx, in, j)
}

// resume goes on with a deployment of the same hash: it follows the newest wish about where to stop.
func resume(ctx context.Context, tx *pg.Tx, in Staging, j jobRow, d openDeployment, open []openDeployment) (Staged, error) {
	out := Staged{Job: in.Spec.Job, Number: job.Number(d.Number), Deployment: d.ID, Resumed: true, FlipOnly: d.FlipOnly}
	if err := otherRollingOut(j.Name, d.ID, open); err != nil {
		return Staged{}, err
	}
	var err error
	if out.Applied, err = applyPlainly(ctx, tx, in, d.Number, d.ID); err != nil {
		return out, err
	}
	promote := job.PromoteMode(d.Promote)
	if in.Promote != "" {
		promote = in.Promote
	}
	return out, resumeDeployment(ctx, tx, d.ID, j.Live, promote, in)
}

func otherRollingOut(name string, but int64, open []openDeployment) error {
	for _, d := range open {
		if d.State == job.RollingOut && d.ID != but {
			return refuse(job.ExitConflict, fmt.Sprintf("kappactl wait %s v%d --for verified, or: kappactl abort %s v%d", name, d.Number, name, d.Number),
				"deployment %d of %s/v%d is rolling out; a job has one at a time", d.ID, name, d.Number)
		}
	}
	return nil
}

// flipAgain makes a deployment that only flips to a version that is standby.
func flipAgain(ctx context.Context, tx *pg.Tx, in Staging, j jobRow, standby versionKey) (Staged, error) {
	out := Staged{Job: in.Spec.Job, Number: job.Number(standby.Number), FlipOnly: true}
	var err error
	if out.Applied, err = applyPlainly(ctx, tx, in, standby.Number, 0); err != nil {
		return out, err
	}
	out.Deployment, err = insertDeployment(ctx, tx, in, j, standby.Number, true, job.PromoteAuto)
	if err != nil {
		return out, err
	}
	return out, addEvent(ctx, tx, entry{
		Job: j.Name, Number: standby.Number, Deployment: out.Deployment, Kind: "deploy", By: in.By,
		Message: "the same version is standby: it only flips",
	})
}

func stageNew(ctx context.Context, tx *pg.Tx, in Staging, j jobRow) (Staged, error) {
	number, err := nextNumber(ctx, tx, j.Name)
	if err != nil {
		return Staged{}, err
	}
	out := Staged{Job: in.Spec.Job, Number: job.Number(number)}
	if err := insertVersion(ctx, tx, in, number); err != nil {
		return out, err
	}
	out.Deployment, err = insertDeployment(ctx, tx, in, j, number, false, promoteMode(in, j))
	if err != nil {
		return out, err
	}
	return out, addEvent(ctx, tx, entry{
		Job: j.Name, Number: number, Deployment: out.Deployment, Kind: "deploy", By: in.By, Message: "staged as " + in.Hash,
	})
}

func promoteMode(in Staging, j jobRow) job.PromoteMode {
	switch {
	case in.Promote != "":
		return in.Promote
	case in.Spec.Promote != "":
		return in.Spec.Promote
	case j.Live == nil:
		return job.PromoteAuto
	}
	return job.PromoteManual
}

func (in Staging) options() string {
	b, err := json.Marshal(options{AllowColumnChange: in.AllowColumnChange, AcceptShorterHistory: in.AcceptShorterHistory})
	if err != nil {
		return "{}" // cannot happen: two plain fields
	}
	return string(b)
}
