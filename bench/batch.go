package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// lambdaViews is the job of the page views in mode lambda; its archive is in the folder of the run.
func (b *bench) lambdaViews() string {
	return "mode: lambda\n" + fmt.Sprintf(viewsJob+keptJob, b.views.name, b.workers, b.folder)
}

// batchRounds is a batch run from scratch over the archive with typed columns, on a database of its own: from the
// command until readers see the generation.
func (b *bench) batchRounds(ctx context.Context) (_ []measure, err error) {
	h, err := b.hostLambda(ctx)
	if err != nil {
		return nil, err
	}
	defer h.end(&err)
	a := h.agents[0]
	before, _, err := usage(a.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	profile := b.profiled(ctx, a, "batch", 2+int(b.views.records/500_000))
	began := time.Now()
	cli, err := b.batchRun(ctx, h.dsn)
	m := measure{Records: b.views.records, Bytes: b.views.bytes, Served: time.Since(began).Seconds()}
	profile()
	if err != nil {
		return nil, errors.Join(err, errors.New(a.log.text.String()))
	}
	after, peak, err := usage(a.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	m.CPU, m.Peak = after-before+cli, peak
	return []measure{m}, m.lookBatch(ctx, h.dsn, b.views)
}

// hostLambda starts an agent with the page views as a live version of mode lambda, replayed from typed columns.
func (b *bench) hostLambda(ctx context.Context) (*hosted, error) {
	if b.result.Archived == nil {
		made, err := b.archive(ctx)
		if err != nil {
			return nil, fmt.Errorf("archive the page views: %w", err)
		}
		b.result.Archived = made
	}
	h, err := b.host(ctx, 1)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.folder, "lambda.yaml")
	err = errors.Join(b.result.Archived.into(ctx, h.dsn, archiveTables()),
		os.WriteFile(path, []byte(b.lambdaViews()), 0o600))
	if err == nil {
		_, _, err = b.command(ctx, h.dsn, "deploy", path)
	}
	if err != nil {
		h.end(&err)
		return nil, err
	}
	return h, nil
}

// batchRun computes a generation of the page views from scratch and returns the CPU time of the command.
func (b *bench) batchRun(ctx context.Context, dsn string) (cpu float64, err error) {
	_, cpu, err = b.command(ctx, dsn, "batch", "run", "pageviews", "--full", "--wait")
	return cpu, err
}

// lookBatch reads where the time of the newest generation went, and checks what readers see.
func (m *measure) lookBatch(ctx context.Context, dsn string, t topic) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var text string
	err = conn.QueryRow(ctx, `SELECT timings || jsonb_build_object('from the cut to live', extract(epoch FROM live_at - started_at))
		FROM kappactl.generation WHERE state = 'live'`).Scan(&text)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), &m.Steps); err != nil {
		return err
	}
	m.Replay = m.Steps["read"]
	var records, sum int64
	err = conn.QueryRow(ctx, `SELECT sum(views)::bigint, sum(total)::bigint FROM public.rolled_up`).Scan(&records, &sum)
	if err == nil && (records != t.records || sum != t.sum) {
		err = fmt.Errorf("the view has %d records and a sum of %d: want %d and %d", records, sum, t.records, t.sum)
	}
	return err
}

// batchLine compares a batch run from scratch with the replay from the log in the same round; empty without both.
func (r *result) batchLine() string {
	name := r.named(batchName)
	ratio := r.ofLog(batchName)
	if name == "" || ratio == 0 {
		return ""
	}
	steps := r.Rounds[name][0].Steps
	var parts []string
	for _, step := range []string{"begin", "read", "fill", "index", "compare", "attach"} {
		parts = append(parts, fmt.Sprintf("%s %.2f s", step, steps[step]))
	}
	return fmt.Sprintf("\nA batch run from scratch over typed columns takes %.2f of the time of the replay from the log in the same round: %s.\n",
		1/ratio, strings.Join(parts, ", "))
}
