package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Staging is the version that `deploy` is to make live.
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
	// Serving checks the view's contract before anything is replayed; nil leaves it to the controller.
	Serving Serving
}

// Staged is the result of Stage.
type Staged struct {
	Job        job.Name
	Number     job.Number
	Deployment int64
	Nothing    bool // this hash is live, and the file says nothing else either
	Resumed    bool // this hash is rolling out or waiting already
	FlipOnly   bool // this hash is standby, or live with another view: nothing is replayed
	Live       bool // this hash is live
	// Applied are the keys of the file that changed beside the hash. Without FlipOnly and Resumed they are in force
	// already.
	Applied []string
}

// Stage writes what `deploy` wants: a new version and its deployment, or a deployment that only flips, or nothing.
// A controller does the rest. Errors that a person has to act on are *job.Refusal; nothing is written then.
func (s *Store) Stage(ctx context.Context, in Staging) (Staged, error) {
	var out Staged
	err := s.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		j, err := lockJobFor(ctx, tx, in)
		if err != nil {
			return err
		}
		if err := checkView(ctx, tx, in, j); err != nil {
			return err
		}
		if err := ledger.OneArchive(ctx, tx, in.Spec); err != nil {
			return err
		}
		out, err = stage(ctx, tx, in, j)
		return err
	})
	if err != nil {
		return Staged{}, fmt.Errorf("stage %s: %w", in.Spec.Job, err)
	}
	return out, nil
}

// lockJobFor makes the job's row when it is new and locks it.
func lockJobFor(ctx context.Context, tx *pg.Tx, in Staging) (ledger.JobRow, error) {
	name, view := in.Spec.Job, in.Spec.Serve.View
	owner, err := ledger.ViewOwner(ctx, tx, view)
	if err != nil {
		return ledger.JobRow{}, err
	}
	if owner != "" && owner != string(name) {
		return ledger.JobRow{}, ledger.RefuseFor(job.ExitConflict, "choose another serve.view",
			reason.ViewOfOther(view, owner))
	}
	if err := ledger.InsertJob(ctx, tx, in.Spec, in.ClusterID); err != nil {
		if pg.Code(err) == ledger.UniqueViolation {
			return ledger.JobRow{}, ledger.RefuseFor(job.ExitConflict, "choose another serve.view", reason.ViewOfOther(view, ""))
		}
		return ledger.JobRow{}, err
	}
	j, err := ledger.LockJob(ctx, tx, name)
	if err != nil {
		return ledger.JobRow{}, err
	}
	if j.DroppingAt != nil {
		return ledger.JobRow{}, ledger.RefuseFor(job.ExitConflict,
			fmt.Sprintf("kappactl drop %s   # waits until it is gone", name),
			reason.DropUnderWay(name))
	}
	if j.View() != view {
		return ledger.JobRow{}, ledger.RefuseFor(job.ExitConflict, "keep serve.view, or deploy under another job name",
			reason.ViewKept(name, j.View(), view))
	}
	if j.ClusterID != "" && in.ClusterID != "" && j.ClusterID != in.ClusterID {
		return ledger.JobRow{}, ledger.RefuseFor(job.ExitConflict, "check --brokers and the context in use",
			reason.OtherCluster(name, j.ClusterID, in.ClusterID))
	}
	return j, nil
}

// checkView refuses a candidate whose columns the view cannot take, and a name that something else has.
func checkView(ctx context.Context, db pg.DB, in Staging, j ledger.JobRow) error {
	if in.Serving == nil {
		return nil
	}
	return ViewFits(ctx, db, in.Serving, j, in.Layout, in.AllowColumnChange)
}

// ViewFits is checkView for stage and for the controller, which checks again before it replays.
func ViewFits(ctx context.Context, db pg.DB, serving Serving, j ledger.JobRow, l job.Layout, allow bool) error {
	if len(j.Contract()) > 0 {
		return serving.Check(j.Contract(), l, allow)
	}
	kind, err := serving.Taken(ctx, db, j.View())
	if err != nil {
		return err
	}
	if kind == "" {
		return nil
	}
	kept, err := ledger.KeptBy(ctx, db, j)
	if err != nil {
		return err
	}
	next := job.AdoptCommand(job.Name(j.Name), j.View()) +
		"   # readers keep it, and see the new version after its promote; or choose another serve.view"
	if !adoptableKind(kind) {
		next = "choose another serve.view, or rename what is there"
	}
	return ledger.RefuseFor(job.ExitConflict, next, reason.ViewTaken(j.View(), kind, kept))
}

func stage(ctx context.Context, tx *pg.Tx, in Staging, j ledger.JobRow) (Staged, error) {
	open, err := ledger.OpenDeployments(ctx, tx, j.Name)
	if err != nil {
		return Staged{}, err
	}
	same, err := ledger.SameHash(ctx, tx, j.Name, in.Hash)
	if err != nil {
		return Staged{}, err
	}
	live, isLive := same.Live(j)
	if isLive && !live.Broken {
		return keepLive(ctx, tx, in, j, live, open)
	}
	for _, d := range open {
		if same.Has(d.Number) && (!isLive || d.Number != live.Number) {
			return resume(ctx, tx, in, j, d, open)
		}
	}
	if err := otherRollingOut(j.Name, 0, open); err != nil {
		return Staged{}, err
	}
	if same.RolledBack() && !in.Again {
		return Staged{}, ledger.RefuseFor(job.ExitConflict, "kappactl deploy FILE --again",
			reason.WasRolledBack(in.Spec.Job, same.RolledBackNumber()))
	}
	if standby, ok := same.Standby(); ok && !standby.Broken {
		return verifyStandby(ctx, tx, in, j, standby)
	}
	return stageNew(ctx, tx, in, j)
}

// resume goes on with a deployment of the same hash: it follows the newest wish about where to stop.
func resume(ctx context.Context, tx *pg.Tx, in Staging, j ledger.JobRow, d ledger.OpenDeployment,
	open []ledger.OpenDeployment,
) (Staged, error) {
	out := Staged{Job: in.Spec.Job, Number: job.Number(d.Number), Deployment: d.ID, Resumed: true, FlipOnly: d.FlipOnly}
	if err := otherRollingOut(j.Name, d.ID, open); err != nil {
		return Staged{}, err
	}
	var err error
	if out.Applied, err = applyPlainly(ctx, tx, in, d.Number, d.ID); err != nil {
		return out, err
	}
	if d.Phase == job.Verified && !ledger.SameNumber(d.Previous, j.Live) { // its checks are to compare it with what is live now
		err := ledger.MoveLocked(ctx, tx, job.Ref{Job: out.Job, Number: out.Number}, d.Phase, ledger.Outdated)
		if err != nil && !errors.Is(err, ledger.ErrMoved) {
			return out, err
		}
	}
	promote := cmp.Or(in.Promote, in.Spec.Promote, job.PromoteMode(d.Promote))
	return out, ledger.ResumeDeployment(ctx, tx, d.ID, in.deployment(j, d.Number, d.FlipOnly, promote))
}

func otherRollingOut(name string, but int64, open []ledger.OpenDeployment) error {
	for _, d := range open {
		if d.State == job.RollingOut && d.ID != but {
			return ledger.RefuseFor(job.ExitConflict,
				fmt.Sprintf("kappactl wait %s v%d --for verified, or: kappactl abort %s v%d", name, d.Number, name, d.Number),
				reason.RollingOut(d.ID, job.Ref{Job: job.Name(name), Number: job.Number(d.Number)}))
		}
	}
	return nil
}

// verifyStandby makes a deployment of a version that is standby: nothing is replayed, and it goes through the gates of
// a candidate.
func verifyStandby(ctx context.Context, tx *pg.Tx, in Staging, j ledger.JobRow, standby ledger.VersionKey) (Staged,
	error,
) {
	out := Staged{Job: in.Spec.Job, Number: job.Number(standby.Number), FlipOnly: true}
	var err error
	if out.Applied, err = applyPlainly(ctx, tx, in, standby.Number, 0); err != nil {
		return out, err
	}
	promote := promoteMode(in, j)
	if in.Again && in.Promote == "" && in.Spec.Promote == "" {
		promote = job.PromoteAuto // who deploys again what was rolled back wants readers to see it
	}
	out.Deployment, err = ledger.InsertDeployment(ctx, tx, in.deployment(j, standby.Number, true, promote))
	if err != nil {
		return out, err
	}
	return out, ledger.AddEvent(ctx, tx, ledger.Entry{
		Job: j.Name, Number: standby.Number, Deployment: out.Deployment, Kind: ledger.EventDeploy, By: in.By,
		Message: reason.StandbyDeployed(),
	})
}

func stageNew(ctx context.Context, tx *pg.Tx, in Staging, j ledger.JobRow) (Staged, error) {
	number, err := ledger.NextNumber(ctx, tx, j.Name)
	if err != nil {
		return Staged{}, err
	}
	out := Staged{Job: in.Spec.Job, Number: job.Number(number)}
	if in.Serving != nil {
		to := job.Ref{Job: out.Job, Number: out.Number}
		if err := in.Serving.Preflight(ctx, tx, j.View(), to, in.Layout, in.Spec.Serve.Grant); err != nil {
			return Staged{}, err
		}
	}
	if err := ledger.InsertVersion(ctx, tx, in.version(number)); err != nil {
		return out, err
	}
	out.Deployment, err = ledger.InsertDeployment(ctx, tx, in.deployment(j, number, false, promoteMode(in, j)))
	if err != nil {
		return out, err
	}
	return out, ledger.AddEvent(ctx, tx, ledger.Entry{
		Job: j.Name, Number: number, Deployment: out.Deployment, Kind: ledger.EventDeploy, By: in.By,
		Message: reason.StagedAs(in.Hash),
	})
}

func promoteMode(in Staging, j ledger.JobRow) job.PromoteMode {
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

// version is the version that the staging makes.
func (in Staging) version(number int) ledger.NewVersion {
	return ledger.NewVersion{
		Number: number, Hash: in.Hash, Spec: in.Spec, Layout: in.Layout, File: in.File, Dialect: in.Dialect,
		Engine:      in.Engine,
		GitRevision: in.GitRevision, By: in.By, Held: in.Until == string(job.Staged),
	}
}

// deployment is the deployment that the staging makes, or the new settings of one that is under way.
func (in Staging) deployment(j ledger.JobRow, number int, flipOnly bool, promote job.PromoteMode) ledger.NewDeployment {
	return ledger.NewDeployment{
		Job: j.Name, Number: number, Previous: j.Live, FlipOnly: flipOnly, Until: in.Until, Promote: promote, By: in.By,
		Options: ledger.Options{AllowColumnChange: in.AllowColumnChange, AcceptShorterHistory: in.AcceptShorterHistory},
	}
}
