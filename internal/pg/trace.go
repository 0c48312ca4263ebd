package pg

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// tracer logs statements and how long they took. Values are not logged: they may be data.
type tracer struct{ log *slog.Logger }

type statementKey struct{}

type statement struct {
	sql   string
	begun time.Time
}

// TraceQueryStart remembers the statement.
func (tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	const most = 160
	sql := strings.Join(strings.Fields(d.SQL), " ")
	if len(sql) > most {
		sql = sql[:most] + "…"
	}
	return context.WithValue(ctx, statementKey{}, statement{sql, time.Now()})
}

// TraceQueryEnd logs it.
func (t tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	s, _ := ctx.Value(statementKey{}).(statement)
	t.log.Debug("statement", "sql", strings.ToValidUTF8(s.sql, ""), "took", time.Since(s.begun), "rows",
		d.CommandTag.RowsAffected(), "error", d.Err)
}
