package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// table reads the rows of a Parquet or CSV file as JSON.
type table struct {
	path    string
	engine  *engine
	stream  *stream
	encoder *encoder
}

// tableFile is a kind of file that the engine reads: its relation, and its columns in order.
type tableFile struct {
	relation func(path string) string
	columns  func(e *engine, relation string) ([]column, error)
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
	e, err := openEngine()
	if err != nil {
		return nil, err
	}
	t := &table{path: path, engine: e}
	if err := t.start(ctx, key, kind); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *table) start(ctx context.Context, key string, kind tableFile) error {
	relation := kind.relation(t.path)
	columns, err := kind.columns(t.engine, relation)
	if err != nil {
		return t.unreadable(err)
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	names, exprs := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], exprs[i] = c.name, c.expr
	}
	keyIndex := slices.Index(names, key)
	if key != "" && keyIndex < 0 {
		return refuse("choose one of: "+strings.Join(names, ", "), "%s has no column %q", t.path, key)
	}
	t.encoder = newEncoder(columns, keyIndex)
	if t.stream, err = t.engine.query("SELECT " + strings.Join(exprs, ", ") + " FROM " + relation); err != nil {
		return t.unreadable(err)
	}
	return nil
}

// unreadable is the engine's first line about the file.
func (t *table) unreadable(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	refusal := refuse("", "%s cannot be read: %s", t.path, line)
	refusal.Err = err
	return refusal
}

func (t *table) next(ctx context.Context) ([]row, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	batch, err := t.stream.next()
	if errors.Is(err, io.EOF) {
		return nil, err
	}
	if err != nil {
		return nil, t.unreadable(err)
	}
	defer batch.Release()
	return t.encoder.rows(batch)
}

func (t *table) close() error {
	if t.stream != nil {
		t.stream.close()
	}
	t.engine.close()
	return nil
}

func parquetColumns(e *engine, relation string) ([]column, error) {
	described, err := e.texts("SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM " + relation + ")")
	if err != nil {
		return nil, err
	}
	columns := make([]column, len(described[0]))
	for i, name := range described[0] {
		columns[i] = parquetColumn(name, described[1][i])
	}
	return columns, nil
}

// csvColumns reads the whole file once to tell the kinds.
func csvColumns(e *engine, relation string) ([]column, error) {
	described, err := e.texts("SELECT column_name FROM (DESCRIBE SELECT * FROM " + relation + ")")
	if err != nil {
		return nil, err
	}
	kinds := make([]string, len(described[0]))
	for i, name := range described[0] {
		kinds[i] = csvKind(name)
	}
	told, err := e.texts("SELECT " + strings.Join(kinds, ", ") + " FROM " + relation)
	if err != nil {
		return nil, err
	}
	columns := make([]column, len(kinds))
	for i, name := range described[0] {
		if len(told[i]) != 1 {
			return nil, fmt.Errorf("column %s: no kind", name)
		}
		columns[i] = csvColumn(name, told[i][0])
	}
	return columns, nil
}
