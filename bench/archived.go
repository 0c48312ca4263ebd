package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/kafka"
)

// archived is the archive of the page views, and how it was made.
type archived struct {
	Records int64   `json:"records"`
	Values  int64   `json:"value_bytes"` // of the records
	Topic   int64   `json:"topic_bytes"` // on the broker's disk
	Raw     int64   `json:"raw_bytes"`
	Typed   int64   `json:"typed_bytes"`
	Seconds float64 `json:"seconds"`     // of archiving
	CPU     float64 `json:"cpu_seconds"` // of the agent meanwhile
	Typing  float64 `json:"typing_seconds"`
	// TypingCPU is that of kappactl archive type.
	TypingCPU float64 `json:"typing_cpu_seconds"`

	tables map[string]string // the rows of its tables, as COPY writes them
}

// archiveTables hold the manifest, in the order of their references.
func archiveTables() []string {
	return []string{"archive", "archive_position", "archive_file", "archive_typed"}
}

// keptJob asks for the archive and replays nothing.
const keptJob = `archive: {location: "file://%s/archive", roll: {every: 1s, size: 64MB}}
`

// archivedRounds is a deploy that replays the archive: its records, and its typed columns.
func (b *bench) archivedRounds(ctx context.Context) ([]measure, error) {
	if b.result.Archived == nil {
		made, err := b.archive(ctx)
		if err != nil {
			return nil, fmt.Errorf("archive the page views: %w", err)
		}
		b.result.Archived = made
	}
	text := fmt.Sprintf(strings.Replace(viewsJob, "replay: {", "replay: {source: auto, ", 1), b.views.name, b.workers)
	var out []measure
	for _, tables := range [][]string{archiveTables()[:3], archiveTables()} {
		m, err := b.deployArchived(ctx, tables, text)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// deployArchived is deploy on a database that has some tables of the manifest.
func (b *bench) deployArchived(ctx context.Context, tables []string, text string) (m measure, err error) {
	h, err := b.host(ctx, 1)
	if err != nil {
		return m, err
	}
	defer h.end(&err)
	if err := b.result.Archived.into(ctx, h.dsn, tables); err != nil {
		return m, err
	}
	return b.deployOn(ctx, h, "archived-"+tables[len(tables)-1], text, b.views)
}

// archive archives the page views and stores their typed columns.
func (b *bench) archive(ctx context.Context) (_ *archived, err error) {
	h, err := b.host(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer h.end(&err)
	dsn, a := h.dsn, h.agents[0]
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	path := filepath.Join(b.folder, "kept.yaml")
	text := fmt.Sprintf(strings.Replace(viewsJob, "replay: {", "replay: {start: latest, ", 1)+keptJob, b.views.name,
		b.workers, b.folder)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	out := &archived{Records: b.views.records, Values: b.views.bytes, tables: map[string]string{}}
	before, _, err := usage(a.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if _, _, err := b.command(ctx, dsn, "deploy", path); err != nil {
		return nil, err
	}
	for records := int64(0); records < b.views.records; {
		if err := errors.Join(pause(ctx, 20*time.Millisecond), conn.QueryRow(ctx,
			`SELECT coalesce(sum(records), 0)::bigint FROM kappactl.archive_position`).Scan(&records)); err != nil {
			return nil, err
		}
	}
	after, _, err := usage(a.cmd.Process.Pid)
	out.Seconds, out.CPU = time.Since(began).Seconds(), after-before
	if err != nil {
		return nil, err
	}
	began = time.Now()
	if _, out.TypingCPU, err = b.command(ctx, dsn, "archive", "type", "pageviews"); err != nil {
		return nil, err
	}
	out.Typing = time.Since(began).Seconds()
	b.say("archived %d records in %.1fs with %.1fs of CPU, typed in %.1fs", out.Records, out.Seconds, out.CPU, out.Typing)
	return out, errors.Join(out.weigh(ctx, b, conn), out.from(ctx, conn))
}

// weigh reads the bytes stored.
func (a *archived) weigh(ctx context.Context, b *bench, conn *pgx.Conn) error {
	admin, err := kafka.NewAdmin(kafka.Config{Brokers: b.brokers})
	if err != nil {
		return err
	}
	defer admin.Close()
	sizes, err := admin.Sizes(ctx, []string{b.views.name})
	for _, n := range sizes {
		a.Topic += n
	}
	return errors.Join(err, conn.QueryRow(ctx, `SELECT (SELECT sum(bytes) FROM kappactl.archive_file)::bigint,
		(SELECT sum(bytes) FROM kappactl.archive_typed)::bigint`).Scan(&a.Raw, &a.Typed))
}

// from keeps the rows of the manifest.
func (a *archived) from(ctx context.Context, conn *pgx.Conn) error {
	for _, table := range archiveTables() {
		var text strings.Builder
		if _, err := conn.PgConn().CopyTo(ctx, &text, "COPY kappactl."+table+" TO STDOUT"); err != nil {
			return fmt.Errorf("keep the rows of %s: %w", table, err)
		}
		a.tables[table] = text.String()
	}
	return nil
}

// into writes the rows of some tables of the manifest to another database, where no job asks for the archive.
func (a *archived) into(ctx context.Context, dsn string, tables []string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `SET session_replication_role = replica; BEGIN`); err != nil { // without triggers
		return err
	}
	for _, table := range tables {
		if _, err := conn.PgConn().CopyFrom(ctx, strings.NewReader(a.tables[table]),
			"COPY kappactl."+table+" FROM STDIN"); err != nil {
			return fmt.Errorf("write the rows of %s: %w", table, err)
		}
	}
	_, err = conn.Exec(ctx, `UPDATE kappactl.archive SET wanted_by = '{}'; COMMIT`)
	return err
}

// archiveTable shows what the archive of the page views is and what reading it gains.
func (r *result) archiveTable() string {
	a := r.Archived
	size := func(name string, bytes int64) []string {
		return []string{
			name, megabytes(float64(bytes)), fmt.Sprintf("%.1f", float64(bytes)/float64(a.Records)),
			fmt.Sprintf("%.0f %%", 100*float64(bytes)/float64(a.Topic)),
		}
	}
	sizes := table{
		{"", "bytes", "a record", "of the topic"},
		size("values of the records", a.Values), size("topic on the broker, compression "+r.Codec, a.Topic),
		size("archive", a.Raw), size("typed columns", a.Typed),
	}
	out := sizes.String() + fmt.Sprintf("\nArchiving took %.1f s and %.1f s of the agent's CPU: %s records/s, and %s records/s on one core. Typing took "+
		"%.1f s and %.1f s of CPU.\n", a.Seconds, a.CPU, million(float64(a.Records)/a.Seconds),
		million(float64(a.Records)/a.CPU), a.Typing, a.TypingCPU)
	if log := r.ofLog(rawName); log > 0 {
		out += fmt.Sprintf("\nBeside the replay from the log in the same round: %.2f times its rate from the archive, %.2f times from typed columns.\n",
			log, r.ofLog(typedName))
	}
	return out + r.batchLine()
}

// named is the first row whose name begins so; empty: it was not measured.
func (r *result) named(prefix string) string {
	for _, name := range r.Order {
		if strings.HasPrefix(name, prefix) {
			return name
		}
	}
	return ""
}

// ofLog is the median of how many times the rate of the deploy from the log a variant has in the same round; 0: not
// measured.
func (r *result) ofLog(prefix string) float64 {
	log, all := r.Rounds[r.named(logName)], r.Rounds[r.named(prefix)]
	if len(all) == 0 || len(log) < len(all) {
		return 0
	}
	ratios := make([]float64, len(all))
	for i := range all {
		ratios[i] = all[i].rate() / log[i].rate()
	}
	return median(ratios)
}
