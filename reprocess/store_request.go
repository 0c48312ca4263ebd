package reprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

func insertRequest(ctx context.Context, tx *pg.Tx, r Request) (int64, error) {
	args, err := json.Marshal(r.Args)
	if err != nil {
		return 0, fmt.Errorf("encode request: %w", err)
	}
	var id int64
	err = tx.QueryRow(ctx, `INSERT INTO kappactl.request (job, number, verb, args, by)
		VALUES (@job, @number, @verb, @args::jsonb, @by) RETURNING id`,
		pgx.NamedArgs{"job": string(r.Job), "number": int(r.Number), "verb": string(r.Verb), "args": string(args), "by": r.By}).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("write request: %w", err)
	}
	return id, nil
}

func readAnswer(ctx context.Context, db pg.DB, id int64) (*Answer, error) {
	var a Answer
	var code *int
	err := db.QueryRow(ctx, `SELECT exit_code, answer, next_command FROM kappactl.request WHERE id = @id`,
		pgx.NamedArgs{"id": id}).Scan(&code, &a.Text, &a.Next)
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

// requestRow is a request under a claim.
type requestRow struct {
	ID     int64
	Job    string
	Number int
	Verb   Verb
	Args   string
	By     string
	At     time.Time
}

// readRequest reads an open request; errLost when it is answered or somebody else claimed it.
func readRequest(ctx context.Context, db pg.DB, id, claim int64) (requestRow, error) {
	rows, err := collect[requestRow](ctx, db, `SELECT id, job, number, verb, args::text AS args, by, at FROM kappactl.request
		WHERE id = @id AND claim = @claim AND answered_at IS NULL`, pgx.NamedArgs{"id": id, "claim": claim})
	if err != nil {
		return requestRow{}, fmt.Errorf("read request %d: %w", id, err)
	}
	if len(rows) == 0 {
		return requestRow{}, errLost
	}
	return rows[0], nil
}

// writeAnswer answers a request; errLost when it is answered or somebody else claimed it.
func writeAnswer(ctx context.Context, db pg.DB, id, claim int64, a Answer) error {
	tag, err := db.Exec(ctx, `UPDATE kappactl.request SET exit_code = @code, answer = @text, next_command = @next,
			answered_at = clock_timestamp(), owner = NULL, lease = NULL
		WHERE id = @id AND claim = @claim AND answered_at IS NULL`,
		pgx.NamedArgs{"id": id, "claim": claim, "code": int(a.Code), "text": a.Text, "next": a.Next})
	if err != nil {
		return fmt.Errorf("answer request %d: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return errLost
	}
	return nil
}

// versionBrief is a version as Resolve looks at it.
type versionBrief struct {
	Number  int
	Phase   job.Phase
	Paused  bool
	EndedAt *time.Time
}

type jobVersions struct {
	versions []versionBrief
	// previous is the version that was live before the live one.
	previous *int
}

func readJobVersions(ctx context.Context, db pg.DB, name job.Name) (jobVersions, error) {
	var out jobVersions
	var live *int
	args := pgx.NamedArgs{"job": string(name)}
	err := db.QueryRow(ctx, `SELECT live, (SELECT d.previous FROM kappactl.deployment d
			WHERE d.job = j.name AND d.number = j.live AND d.promoted_at IS NOT NULL ORDER BY d.promoted_at DESC LIMIT 1)
		FROM kappactl.job j WHERE name = @job`, args).Scan(&live, &out.previous)
	if errors.Is(err, pgx.ErrNoRows) {
		return out, unknownJob(ctx, db, name)
	}
	if err != nil {
		return out, fmt.Errorf("read job %s: %w", name, err)
	}
	out.versions, err = collect[versionBrief](ctx, db, `SELECT number, phase, paused_at IS NOT NULL AS paused, ended_at
		FROM kappactl.version WHERE job = @job ORDER BY number DESC`, args)
	if err != nil {
		return out, fmt.Errorf("read versions of %s: %w", name, err)
	}
	return out, nil
}

// readVersion says that a version exists and in which phase it is.
func readVersion(ctx context.Context, db pg.DB, ref job.Ref) (versionBrief, error) {
	rows, err := collect[versionBrief](ctx, db, `SELECT number, phase, paused_at IS NOT NULL AS paused, ended_at
		FROM kappactl.version WHERE job = @job AND number = @number`, pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)})
	if err != nil {
		return versionBrief{}, fmt.Errorf("read %s: %w", ref, err)
	}
	if len(rows) == 0 {
		return versionBrief{}, unknownVersion(ref)
	}
	return rows[0], nil
}

// forgetGap takes back that a deployment cannot go on because of a gap: who waits for it waits again.
func forgetGap(ctx context.Context, tx *pg.Tx, ref job.Ref) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET exit_code = NULL, message = '', next_command = ''
		WHERE job = @job AND number = @number AND exit_code = @code AND ended_at IS NULL`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "code": int(job.ExitGap)})
	if err != nil {
		return fmt.Errorf("forget the gap of %s: %w", ref, err)
	}
	return nil
}
