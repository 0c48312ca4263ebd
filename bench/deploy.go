package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// The hourly rollup of the page views.
const viewsJob = `job: pageviews
source:
  topics: [%s]
  format: json
  columns: {url: text, ts: timestamptz, duration_ms: bigint}
query: |
  SELECT url, date_trunc('hour', ts) AS hour, count(*) AS views, sum(duration_ms) AS total
  FROM source
  GROUP BY url, hour
serve: {view: public.rolled_up}
replay: {workers: %d}
ready: {stable_for: 0s}
promote: auto
`

const flightsJob = `job: flights
source:
  topics: [%s]
  format: json
  columns: {date: timestamp, delay: integer, origin: text}
query: |
  SELECT origin, CAST(date AS DATE) AS day, count(*) AS views, sum(delay) AS total
  FROM source
  GROUP BY origin, day
serve: {view: public.rolled_up}
replay: {workers: %d}
ready: {stable_for: 0s}
promote: auto
`

// countJob counts records and adds up their durations by one column of text: of any size, or as good as unique.
func countJob(name, topic, column string, workers int) string {
	return fmt.Sprintf(`job: %[1]s
source:
  topics: [%[2]s]
  format: json
  columns: {%[3]s: text, duration_ms: bigint}
query: |
  SELECT %[3]s, count(*) AS views, sum(duration_ms) AS total
  FROM source
  GROUP BY %[3]s
serve: {view: public.rolled_up}
replay: {workers: %[4]d}
ready: {stable_for: 0s}
promote: auto
`, name, topic, column, workers)
}

// deploy takes a job from its file to a served view, on an empty database and with a fresh agent.
func (b *bench) deploy(ctx context.Context, name, text string, t topic) (m measure, err error) {
	h, err := b.host(ctx, 1)
	if err != nil {
		return measure{}, err
	}
	defer h.end(&err)
	return b.deployOn(ctx, h, name, text, t)
}

// deployOn is deploy on a database that has no job, with its agent.
func (b *bench) deployOn(ctx context.Context, h *hosted, name, text string, t topic) (measure, error) {
	path := filepath.Join(b.folder, name+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return measure{}, err
	}
	dsn, a := h.dsn, h.agents[0]
	planned, err := b.plan(ctx, dsn, path)
	if err != nil {
		return measure{}, err
	}
	before, _, err := usage(a.cmd.Process.Pid)
	if err != nil {
		return measure{}, err
	}
	profile := b.profiled(ctx, a, name, 2+int(t.records/500_000))
	began := time.Now()
	_, cli, err := b.command(ctx, dsn, "deploy", path, "--output", "json")
	profile()
	if err != nil {
		return measure{}, errors.Join(err, errors.New(a.log.text.String()))
	}
	m := measure{Records: t.records, Bytes: t.bytes, Planned: planned}
	after, peak, err := usage(a.cmd.Process.Pid)
	if err == nil {
		m.CPU, m.Peak = after-before+cli, peak
		err = m.look(ctx, dsn, began, t)
	}
	return m, err
}

// plan is the time that plan predicts for replaying and building, in seconds.
func (b *bench) plan(ctx context.Context, dsn, path string) (seconds float64, err error) {
	text, _, err := b.command(ctx, dsn, "plan", path, "--output", "json")
	if err != nil {
		return 0, err
	}
	var p struct {
		Replay struct {
			Seconds float64 `json:"eta_seconds"`
		} `json:"replay"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return 0, fmt.Errorf("read what plan says: %w", err)
	}
	return p.Replay.Seconds, nil
}

// command runs kappactl to its end and returns what it printed and its CPU time.
func (b *bench) command(ctx context.Context, dsn string, args ...string) (printed []byte, cpu float64, err error) {
	cmd := exec.CommandContext(ctx, b.binary, args...)
	cmd.Env, cmd.Dir = b.env(dsn), b.folder
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, 0, fmt.Errorf("kappactl %s: %w\n%s%s", args[0], err, stdout.String(), stderr.String())
	}
	return stdout.Bytes(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

// look reads from the control tables when what happened, and checks the result.
func (m *measure) look(ctx context.Context, dsn string, began time.Time, t topic) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var frozen, replayed, built, served time.Time
	err = conn.QueryRow(ctx, `SELECT (SELECT frozen_at FROM kappactl.version), (SELECT max(done_at) FROM kappactl.segment),
		(SELECT max(at) FROM kappactl.event WHERE kind = 'built.analyze'), (SELECT max(at) FROM kappactl.event WHERE kind = 'promoted')`).
		Scan(&frozen, &replayed, &built, &served)
	if err != nil {
		return fmt.Errorf("read when what happened: %w", err)
	}
	m.Replay = replayed.Sub(frozen).Seconds()
	m.Built, m.Served, m.Tail = built.Sub(began).Seconds(), served.Sub(began).Seconds(), served.Sub(replayed).Seconds()
	if err := m.steps(ctx, conn, began); err != nil {
		return err
	}
	var rows, records, sum int64
	err = conn.QueryRow(ctx, `SELECT count(*), sum(views)::bigint, sum(total)::bigint FROM public.rolled_up`).Scan(&rows,
		&records, &sum)
	if err != nil {
		return err
	}
	if records != t.records || t.keys != 0 && (rows != t.keys || sum != t.sum) {
		return fmt.Errorf("the view has %d rows with %d records and a sum of %d: want %d, %d and %d", rows, records, sum,
			t.keys, t.records, t.sum)
	}
	return nil
}

// steps reads where the time went: seconds of the workers, and the moments of the deployment since its start.
func (m *measure) steps(ctx context.Context, conn *pgx.Conn, began time.Time) error {
	m.Steps = map[string]float64{}
	rows, err := conn.Query(ctx, `SELECT timings::text FROM kappactl.segment WHERE state = 'done'`)
	if err != nil {
		return err
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, text := range texts {
		var of map[string]float64
		if err := json.Unmarshal([]byte(text), &of); err != nil {
			return err
		}
		for k, v := range of {
			m.Steps["workers "+k] += v
		}
	}
	rows, err = conn.Query(ctx,
		`SELECT 'build ' || substr(kind, 7), (detail ->> 'seconds')::double precision FROM kappactl.event WHERE kind LIKE 'built.%'`)
	if err != nil {
		return err
	}
	var step string
	var took float64
	_, err = pgx.ForEachRow(rows, []any{&step, &took}, func() error { m.Steps[step] = took; return nil })
	if err != nil {
		return err
	}
	rows, err = conn.Query(ctx, `SELECT concat_ws(' ', kind, detail ->> 'to'), at FROM kappactl.event ORDER BY id`)
	if err != nil {
		return err
	}
	var what string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&what, &at}, func() error {
		m.Steps["at "+what] = at.Sub(began).Seconds()
		return nil
	})
	return err
}
