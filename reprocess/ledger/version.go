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

// VersionKey identifies a version that has the same hash, for Stage.
type VersionKey struct {
	Number       int
	Phase        job.Phase
	RolledBackAt *time.Time
	// Broken reports that the version stopped following its topics or that a fault stops one of its partitions.
	Broken bool
}

// SameVersions are the versions of a job with one hash, newest first.
type SameVersions []VersionKey

// SameHash are the versions of a job with a hash, newest first.
func SameHash(ctx context.Context, tx *pg.Tx, name, hash string) (SameVersions, error) {
	rows, err := tx.Query(ctx, `SELECT v.number, v.phase, v.rolled_back_at, v.stale_since IS NOT NULL
			OR EXISTS (SELECT FROM kappactl.position p WHERE p.job = v.job AND p.number = v.number AND p.fault <> '') AS broken
		FROM kappactl.version v WHERE v.job = @job AND v.hash = @hash ORDER BY v.number DESC`, pgx.NamedArgs{"job": name, "hash": hash})
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[VersionKey])
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	return out, nil
}

// Live is the version that readers see, if it is among them.
func (vs SameVersions) Live(j JobRow) (VersionKey, bool) {
	for _, v := range vs {
		if j.Live != nil && v.Number == *j.Live {
			return v, true
		}
	}
	return VersionKey{}, false
}

// Standby is the newest that is standby, if one is.
func (vs SameVersions) Standby() (VersionKey, bool) {
	for _, v := range vs {
		if v.Phase == job.Standby {
			return v, true
		}
	}
	return VersionKey{}, false
}

// Has reports whether a version number is among them.
func (vs SameVersions) Has(number int) bool {
	for _, v := range vs {
		if v.Number == number {
			return true
		}
	}
	return false
}

// RolledBack reports whether the newest version with this hash that was ever live was rolled back.
func (vs SameVersions) RolledBack() bool { return vs.RolledBackNumber() != "" }

// RolledBackNumber is the version that was rolled back, as v2; empty when RolledBack is false.
func (vs SameVersions) RolledBackNumber() string {
	for _, v := range vs {
		if v.RolledBackAt != nil {
			return job.Number(v.Number).String()
		}
		if v.Phase == job.Standby || v.Phase == job.Retired || v.Phase == job.Retiring {
			return "" // live after that and replaced in the ordinary way
		}
	}
	return ""
}

// NewVersion is a version that is staged.
type NewVersion struct {
	Number      int
	Hash        string
	Spec        *job.Spec
	Layout      job.Layout
	File        string // text of the job file
	Dialect     int
	Engine      string
	GitRevision string
	By          string
	Held        bool // its deployment holds it in phase staged
}

// InsertVersion writes a version in phase staged.
func InsertVersion(ctx context.Context, tx *pg.Tx, v NewVersion) error {
	spec, layout, err := EncodeSpec(v.Spec, v.Layout)
	if err != nil {
		return err
	}
	why := reason.NoAgentYet()
	if v.Held {
		why = reason.Held()
	}
	_, err = tx.Exec(ctx, `INSERT INTO kappactl.version
			(job, number, hash, spec, layout, file, dialect, engine, phase, verdict, reason, git_revision, created_by)
		VALUES (@job, @number, @hash, @spec::jsonb, @layout::jsonb, @file, @dialect, @engine, @phase, @verdict, @reason, @git, @by)`,
		pgx.NamedArgs{
			"job": string(v.Spec.Job), "number": v.Number, "hash": v.Hash, "spec": spec, "layout": layout,
			"file": v.File, "dialect": v.Dialect, "engine": v.Engine, "phase": string(job.Staged),
			"verdict": string(job.Starting),
			"reason":  why, "git": v.GitRevision, "by": v.By,
		})
	if err != nil {
		return fmt.Errorf("write version: %w", err)
	}
	return nil
}

// EncodeSpec returns the JSON of a version's columns spec and layout.
func EncodeSpec(spec *job.Spec, layout job.Layout) (specJSON, layoutJSON string, err error) {
	s, err := json.Marshal(spec)
	if err != nil {
		return "", "", fmt.Errorf("encode spec: %w", err)
	}
	l, err := json.Marshal(layout)
	if err != nil {
		return "", "", fmt.Errorf("encode layout: %w", err)
	}
	return string(s), string(l), nil
}

// GitRevisionOf is the git revision of a version's job file, empty when unknown.
func GitRevisionOf(ctx context.Context, db pg.DB, ref job.Ref) (string, error) {
	var revision string
	err := db.QueryRow(ctx, `SELECT git_revision FROM kappactl.version WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}).Scan(&revision)
	return revision, Wrap(err, "read the revision of %s", ref)
}

// Move takes a version from the phase it was read in to the one that follows on, fenced by the deployment's claim.
func Move(ctx context.Context, db pg.DB, st *State, on Event) error {
	to, ok := Next(st.Phase, on)
	if !ok {
		return fmt.Errorf("%s is %s: %q means nothing there: %w", st.Ref(), st.Phase, on, ErrLost)
	}
	tag, err := db.Exec(ctx, `UPDATE kappactl.version v SET phase = @to, phase_since = clock_timestamp(),
			frozen_at = CASE WHEN @to::text = 'replaying' THEN clock_timestamp() ELSE v.frozen_at END,
			built_xid = CASE WHEN @to::text = 'catching_up' AND @from::text = 'building' THEN pg_current_xact_id() ELSE v.built_xid END
		FROM kappactl.deployment d
		WHERE v.job = @job AND v.number = @number AND v.phase = @from AND v.paused_at IS NOT DISTINCT FROM @paused::timestamptz
		  AND d.id = @id AND d.claim = @claim AND d.job = v.job AND d.number = v.number`,
		pgx.NamedArgs{
			"job": st.Job, "number": st.Number, "from": string(st.Phase), "to": string(to), "paused": st.PausedAt,
			"id": st.ID, "claim": st.Claim,
		})
	if err != nil {
		return fmt.Errorf("move %s to %s: %w", st.Ref(), to, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrLost
	}
	e := st.Entry(EventPhase, reason.Phase(st.Phase, to, string(on)))
	e.Detail = map[string]string{"from": string(st.Phase), "to": string(to)}
	return AddEvent(ctx, db, e)
}

// FailVersion ends a candidate and its deployment; what it leaves behind is cleaned up after.
func FailVersion(ctx context.Context, tx *pg.Tx, st *State, a Answer) error {
	if err := Move(ctx, tx, st, CannotGoOn); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE kappactl.version SET exit_code = @code, error = @reason, verdict = 'unhealthy', reason = @reason,
			verdict_since = clock_timestamp() WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number, "code": int(a.Code), "reason": a.Reason})
	if err != nil {
		return fmt.Errorf("fail %s: %w", st.Ref(), err)
	}
	if st.State.Ended() {
		return nil
	}
	return MoveDeployment(ctx, tx, st, Failed, a)
}

// CountWorkers counts the leases that workers still hold on a version.
func CountWorkers(ctx context.Context, db pg.DB, st *State) (int, error) {
	var n int
	err := db.QueryRow(ctx, `SELECT
			(SELECT count(*) FROM kappactl.position WHERE job = @job AND number = @number AND lease > clock_timestamp())
			+ (SELECT count(*) FROM kappactl.segment WHERE job = @job AND number = @number AND lease > clock_timestamp() AND state = 'claimed')`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number}).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count workers of %s: %w", st.Ref(), err)
	}
	return n, nil
}

// EndVersion notes that nothing of a version is left.
func EndVersion(ctx context.Context, tx *pg.Tx, st *State) error {
	if st.Phase == job.Retiring {
		if err := Move(ctx, tx, st, Cleaned); err != nil {
			return err
		}
	}
	args := pgx.NamedArgs{"job": st.Job, "number": st.Number, "id": st.ID, "claim": st.Claim}
	tag, err := tx.Exec(ctx, `UPDATE kappactl.version v SET ended_at = clock_timestamp() FROM kappactl.deployment d
		WHERE v.job = @job AND v.number = @number AND v.ended_at IS NULL AND d.id = @id AND d.claim = @claim`, args)
	if err != nil {
		return fmt.Errorf("end %s: %w", st.Ref(), err)
	}
	if tag.RowsAffected() == 0 {
		return ErrLost
	}
	if _, err := tx.Exec(ctx, `DELETE FROM kappactl.observation WHERE job = @job AND number = @number`, args); err != nil {
		return fmt.Errorf("end %s: %w", st.Ref(), err)
	}
	return nil
}

// LockVersion locks a version's row against changes of its phase, and returns the phase. Commits, whose dead letters
// refer to the row, go on.
func LockVersion(ctx context.Context, tx *pg.Tx, ref job.Ref) (job.Phase, error) {
	var phase job.Phase
	err := tx.QueryRow(ctx, `SELECT phase FROM kappactl.version WHERE job = @job AND number = @number FOR NO KEY UPDATE`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}).Scan(&phase)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", unknownVersion(ref)
	}
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", ref, err)
	}
	return phase, nil
}

// LockVersions keeps the controllers of both versions from moving them until the transaction ends.
func LockVersions(ctx context.Context, tx *pg.Tx, a, b job.Ref) error {
	_, err := tx.Exec(ctx, `SELECT 1 FROM kappactl.version WHERE job = @job AND number IN (@a, @b) ORDER BY number FOR NO KEY UPDATE`,
		pgx.NamedArgs{"job": string(a.Job), "a": int(a.Number), "b": int(b.Number)})
	if err != nil {
		return fmt.Errorf("lock versions of %s: %w", a.Job, err)
	}
	return nil
}

// MoveLocked moves a version that the transaction has locked; ErrMoved when it is in another phase by now.
func MoveLocked(ctx context.Context, tx *pg.Tx, ref job.Ref, from job.Phase, on Event) error {
	to, ok := Next(from, on)
	if !ok {
		return Refuse(job.ExitConflict, "kappactl status "+string(ref.Job), "%s is %s: %q means nothing there", ref, from, on)
	}
	tag, err := tx.Exec(ctx, `UPDATE kappactl.version SET phase = @to, phase_since = clock_timestamp()
		WHERE job = @job AND number = @number AND phase = @from`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "from": string(from), "to": string(to)})
	if err != nil {
		return fmt.Errorf("move %s to %s: %w", ref, to, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("%s is no longer %s: %w", ref, from, ErrMoved)
	}
	return nil
}

// NoteLive notes on the version rows what a flip means for them; both are locked and moved by then.
func NoteLive(ctx context.Context, tx *pg.Tx, to job.Ref, from *job.Ref, keepOld time.Duration, back bool) error {
	args := pgx.NamedArgs{"job": string(to.Job), "to": int(to.Number), "keep": pg.Interval(keepOld), "back": back}
	_, err := tx.Exec(ctx, `UPDATE kappactl.version SET standby_until = NULL, rolled_back_at = NULL, paused_at = NULL
		WHERE job = @job AND number = @to`, args)
	if err != nil || from == nil {
		return Wrap(err, "note %s as live", to)
	}
	args["from"] = int(from.Number)
	_, err = tx.Exec(ctx, `UPDATE kappactl.version SET standby_until = clock_timestamp() + @keep::interval,
			rolled_back_at = CASE WHEN @back::boolean THEN clock_timestamp() ELSE rolled_back_at END
		WHERE job = @job AND number = @from`, args)
	return Wrap(err, "note %s as standby", *from)
}

// SetPaused pauses a version or lets it continue, and reports whether that changed anything.
func SetPaused(ctx context.Context, tx *pg.Tx, ref job.Ref, paused bool) (bool, error) {
	tag, err := tx.Exec(ctx, `UPDATE kappactl.version SET paused_at = CASE WHEN @paused::boolean THEN clock_timestamp() END
		WHERE job = @job AND number = @number AND (paused_at IS NOT NULL) <> @paused::boolean`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "paused": paused})
	return tag.RowsAffected() == 1, Wrap(err, "pause or resume %s", ref)
}
