package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// Dialect is raised only when the golden files of PARTIAL change.
const Dialect = 1

// compileMemory is enough to bind a query over an empty table.
const compileMemory = 128e6

// Compiled is a job's query, taken apart.
type Compiled struct {
	Layout job.Layout
	// Fields are the declared and meta columns that PARTIAL reads, in the order of the Arrow struct (format.New wants them).
	Fields []string
	// Partial is the DuckDB SELECT from relation source to keys and states, in the order of the query (typed; golden files
	// keep it).
	Partial string
	// Oracle is the user's query, whose columns are its select list. It is rewritten only where DuckDB alone is ambiguous or
	// rounds twice: avg of integers and decimals is the total as DOUBLE divided by the count as DOUBLE, each rounded
	// once, as FINISH has it.
	Oracle string
	// Audit is Oracle; of rows that are appended, with the hidden columns that say where in the log each comes from in front.
	Audit string

	quick   string   // Partial as Land runs it, see quickForms
	laned   string   // the same with one more key, laneAlias, carried up from source
	source  []column // declared and meta columns with their DuckDB types
	outputs []output // keys and states with theirs
	answers []column // the select list with theirs

	rows     *rowQuery // of a query without aggregation
	places   bool      // its aggregates go by time and place in the log
	oneTopic bool
}

// output is a column of PARTIAL and how its values are written in PostgreSQL's syntax.
type output struct {
	column
	write func(value, duck string) string
}

// compiler takes one query apart. Its owner is the goroutine of Compile.
type compiler struct {
	session   *Session
	spec      *job.Spec
	functions catalogue
	refused   *refusals
	source    []column // relation source, in order

	statement tree
	node      tree // the statement's SELECT
	items     []item
	rows      *rowQuery // of a query without aggregation
	vague     bool      // the GROUP BY was refused, so it is not known which items are keys
	plans     []tree    // the statement, bound
}

// Compile takes the query of spec apart, or returns job.Problems naming place, cause and cure. It needs no server.
func Compile(ctx context.Context, spec *job.Spec) (_ *Compiled, err error) {
	session, err := Open(ctx, Config{Memory: compileMemory})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	c := &compiler{session: session, spec: spec, refused: &refusals{spec: spec}, source: sourceColumns(spec.Source)}
	if len(spec.Serve.Key) > 0 {
		c.source = append(c.source, column{tombstoneColumn, "BOOLEAN"})
	}
	if c.functions, err = session.catalogue(ctx); err != nil {
		return nil, fmt.Errorf("read the engine's functions: %w", err)
	}
	if err := c.createSource(ctx); err != nil {
		return nil, fmt.Errorf("declare the columns of source: %w", err)
	}
	compiled, err := c.compile(ctx)
	if err != nil {
		return nil, err
	}
	compiled.Layout.Keep = keepOf(spec, compiled.Layout)
	compiled.Layout.Indexes = indexesOf(spec, compiled.Layout)
	if n := spec.Live.LaneCount(); n > 1 {
		compiled.Layout.Lanes = n
	}
	return compiled, nil
}

// compile goes through the stages; each stage reports all it finds, and the next runs only over what passed.
func (c *compiler) compile(ctx context.Context) (*Compiled, error) {
	for _, stage := range []func(context.Context) error{c.parse, c.read, c.bind, c.typeItems, c.judge} {
		if err := stage(ctx); err != nil {
			return nil, err
		}
		if err := c.refused.err(); err != nil {
			return nil, err
		}
	}
	out, err := c.derive(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.prove(ctx, out); err != nil {
		return nil, err
	}
	if err := c.refused.err(); err != nil {
		return nil, err
	}
	return out, nil
}

// prove binds what will be run over the fields that it will be run over.
func (c *compiler) prove(ctx context.Context, out *Compiled) error {
	for _, run := range []struct {
		fields []string
		text   string
	}{{out.FieldsFor(1), out.Oracle}, {out.FieldsFor(1), out.Land(1)}, {out.FieldsFor(2), out.Land(2)}} {
		if err := c.limitSource(ctx, run.fields); err != nil {
			return fmt.Errorf("declare the fields of source: %w", err)
		}
		if _, err := c.session.columns(ctx, run.text); err != nil {
			cause, _, _ := strings.Cut(err.Error(), "\n")
			c.refused.add(0, "the query does not bind over the columns that it names: "+cause, "name every column plainly, without schema")
			return nil
		}
	}
	return nil
}

// emptyTable holds the declared columns that relation source is a view of, as it is when records are read: a table of its own
// would offer rowid and a schema.
const emptyTable = "_kappactl_empty"

// createSource makes an empty relation with the declared types to bind against.
func (c *compiler) createSource(ctx context.Context) error {
	if err := c.session.exec(ctx, "CREATE TABLE "+emptyTable+" ("+columnList(c.source)+")"); err != nil {
		return err
	}
	return c.limitSource(ctx, columnNames(c.source))
}

// limitSource makes relation source have these fields only.
func (c *compiler) limitSource(ctx context.Context, fields []string) error {
	quoted := make([]string, len(fields))
	for i, f := range fields {
		quoted[i] = ident(f)
	}
	return c.session.exec(ctx, "CREATE OR REPLACE TEMP VIEW "+SourceRelation+" AS SELECT "+strings.Join(quoted, ", ")+" FROM "+emptyTable)
}

// parse reads the query into its tree and refuses what is not one SELECT without parameters.
func (c *compiler) parse(ctx context.Context) error {
	statements, err := c.session.parse(ctx, c.spec.Query)
	var ee *engineError
	if errors.As(err, &ee) {
		c.refusedParse(ee)
		return nil
	}
	if err != nil {
		return fmt.Errorf("parse the query: %w", err)
	}
	switch len(statements) {
	case 0:
		c.refused.add(0, "the query is empty", "write SELECT … FROM source GROUP BY …")
		return nil
	case 1:
		c.statement, c.node = statements[0], statements[0].child("node")
		return nil
	default:
		c.refused.add(firstPlace(statements[1]), "the query holds more than one statement", "write one SELECT")
		return nil
	}
}

func (c *compiler) refusedParse(e *engineError) {
	if e.kind == "parser" {
		c.refused.add(e.at, e.message, "correct the SQL; the query is DuckDB's dialect")
		return
	}
	// The engine serializes plain SELECT statements only: PIVOT, INSERT, COPY, SET, … end here.
	c.refused.add(0, "the query is not a plain SELECT", "write one SELECT over source; in place of PIVOT write one aggregate a column: sum(x) FILTER (WHERE kind = 'a') AS a")
}

// read judges the tree: what the query is made of, and its select list.
func (c *compiler) read(ctx context.Context) error {
	if !c.shape() {
		return nil
	}
	return c.takeItems(ctx)
}

// bind lets the engine resolve names and types.
func (c *compiler) bind(ctx context.Context) error {
	plans, err := c.session.plan(ctx, c.spec.Query)
	var ee *engineError
	if errors.As(err, &ee) {
		c.refusedBind(ee)
		return nil
	}
	if err != nil {
		return fmt.Errorf("bind the query: %w", err)
	}
	c.plans = plans
	return nil
}

// judge looks at what the bound query really calls.
func (c *compiler) judge(context.Context) error {
	for _, p := range c.plans {
		c.judgePlan(p)
	}
	return nil
}

// placeOf is the node's own place, else the first one below it.
func placeOf(t tree) int {
	if at := t.at(); at >= 0 {
		return at
	}
	return firstPlace(t)
}

// firstPlace is the smallest known place in a node.
func firstPlace(t tree) int {
	first := -1
	each(t, func(n tree) bool {
		if at := n.at(); at >= 0 && (first < 0 || at < first) {
			first = at
		}
		return true
	})
	return first
}

func columnNames(columns []column) []string {
	names := make([]string, len(columns))
	for i, col := range columns {
		names[i] = col.name
	}
	return names
}

func columnList(columns []column) string {
	text := ""
	for i, col := range columns {
		if i > 0 {
			text += ", "
		}
		text += ident(col.name) + " " + col.typ
	}
	return text
}
