package speedlayer

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/pg"
)

// copy writes the rows to staging. A connection that takes no more of them in time is given up with an *untakenError.
func (l *landing) copy(ctx context.Context, tx *pg.Tx, rows io.Reader) error {
	names, _ := l.layout.StagedColumns()
	columns := []string{pg.Ident(segmentColumn)}
	for _, n := range names {
		columns = append(columns, pg.Ident(n))
	}
	sql := fmt.Sprintf("COPY %s (%s) FROM STDIN", pg.Ident(l.schema, l.target.staging()), strings.Join(columns, ", "))
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	within := l.config.Timeout
	watched := &copyRows{
		rows: rows, hit: l.hit, within: within, unanswered: time.AfterFunc(within, func() { giveUp(errUntaken) }),
	}
	defer watched.unanswered.Stop()
	_, err := tx.Raw().Conn().PgConn().CopyFrom(ctx, watched, sql)
	if err != nil && pg.Code(err) == "" && context.Cause(ctx) == errUntaken { //nolint:errorlint // the very one
		return &untakenError{within: within, err: err}
	}
	return err
}

// copyRows gives COPY its rows and gives the connection up when it does not take a piece, or does not answer the last
// one, in time.
type copyRows struct {
	rows       io.Reader
	hit        func(point string)
	within     time.Duration
	unanswered *time.Timer
	pieces     int
}

// Read is called for the next piece when the connection has taken the one before; how long the query needs for it does
// not count.
func (c *copyRows) Read(b []byte) (int, error) {
	c.unanswered.Stop()
	defer c.unanswered.Reset(c.within)
	if c.pieces == 1 {
		c.hit(faultpoint.SegmentCopying)
	}
	c.pieces++
	return c.rows.Read(b)
}
