package devstack

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"slices"
	"strings"
)

// table reads the rows of a Parquet or CSV file as JSON.
type table struct {
	path  string
	db    *sql.DB
	lines *lines
	keyed bool // a line is the JSON text of the key, a tab and the row
}

// tableFile is a kind of file that DuckDB reads: its relation, and its columns in order.
type tableFile struct {
	relation func(path string) string
	columns  func(ctx context.Context, db *sql.DB, relation string) ([]column, error)
}

// The kinds of table file.
var (
	parquetFile = tableFile{
		relation: func(path string) string { return "read_parquet(" + quoteText(path) + ")" },
		columns:  parquetColumns,
	}
	csvFile = tableFile{
		relation: func(path string) string { return "read_csv(" + quoteText(path) + ", header=true, all_varchar=true)" },
		columns:  csvColumns,
	}
)

func openTable(ctx context.Context, path, key string, kind tableFile) (*table, error) {
	db, err := openEngine()
	if err != nil {
		return nil, err
	}
	t := &table{path: path, db: db, keyed: key != ""}
	if err := t.start(ctx, key, kind); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *table) start(ctx context.Context, key string, kind tableFile) error {
	relation := kind.relation(t.path)
	columns, err := kind.columns(ctx, t.db, relation)
	if err != nil {
		return t.failure(ctx, err)
	}
	line := object(columns)
	if t.keyed {
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == key })
		if i < 0 {
			names := make([]string, len(columns))
			for i, c := range columns {
				names[i] = c.name
			}
			return refuse("choose one of: "+strings.Join(names, ", "), "%s has no column %q", t.path, key)
		}
		line = "coalesce(" + columns[i].json + ", 'null') || chr(9) || " + line
	}
	t.lines, err = start(ctx, t.db, "SELECT "+line+" FROM "+relation)
	return err
}

// failure returns the first line of DuckDB's error about the file, or the reason why ctx ended.
func (t *table) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	refusal := refuse("", "%s cannot be read: %s", t.path, line)
	refusal.Err = err
	return refusal
}

func (t *table) next(ctx context.Context) ([]row, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	batch := make([]row, 0, batchRows)
	for len(batch) < batchRows {
		line, err := t.lines.next()
		switch {
		case errors.Is(err, io.EOF) && len(batch) > 0:
			return batch, nil
		case errors.Is(err, io.EOF):
			return nil, err
		case err != nil:
			return nil, t.failure(ctx, err)
		}
		r, err := t.row(line)
		if err != nil {
			return nil, err
		}
		batch = append(batch, r)
	}
	return batch, nil
}

func (t *table) row(line []byte) (row, error) {
	if !t.keyed {
		return row{value: line}, nil
	}
	text, value, _ := bytes.Cut(line, []byte("\t"))
	key, err := keyOf(text)
	return row{key: key, value: value}, err
}

func (t *table) close() error {
	var err error
	if t.lines != nil {
		err = t.lines.close()
	}
	return errors.Join(err, t.db.Close())
}

func parquetColumns(ctx context.Context, db *sql.DB, relation string) ([]column, error) {
	described, err := shapes(ctx, db, relation)
	if err != nil {
		return nil, err
	}
	columns := make([]column, len(described))
	for i, s := range described {
		columns[i] = column{s.name, jsonOf(quoteName(s.name), s.info, 0)}
	}
	return columns, nil
}

// csvColumns reads the whole file once to determine the kinds.
func csvColumns(ctx context.Context, db *sql.DB, relation string) ([]column, error) {
	described, err := shapes(ctx, db, relation)
	if err != nil {
		return nil, err
	}
	exprs := make([]string, len(described))
	kinds, scanned := make([]string, len(described)), make([]any, len(described))
	for i, s := range described {
		exprs[i], scanned[i] = csvKind(s.name), &kinds[i]
	}
	if err := db.QueryRowContext(ctx, "SELECT "+strings.Join(exprs, ", ")+" FROM "+relation).Scan(scanned...); err != nil {
		return nil, err
	}
	columns := make([]column, len(described))
	for i, s := range described {
		columns[i] = csvColumn(s.name, kinds[i])
	}
	return columns, nil
}
