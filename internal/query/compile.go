package query

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// Dialect changes only when the golden files of PARTIAL change.
const Dialect = 2

// compileMemory is sufficient to bind a query over an empty table, in bytes.
const compileMemory = 128e6

// Compiled is a job's query, split into its parts.
type Compiled struct {
	Layout job.Layout
	// Fields lists the declared and meta columns that PARTIAL reads, in the order of the Arrow struct, as format.New
	// expects them.
	Fields []string
	// Partial is the DuckDB SELECT from relation source to keys and states, in the order of the query, with DuckDB
	// types. Golden files keep it.
	Partial string
	// Oracle is the user's query, whose columns are its select list. It is changed only where DuckDB's result is
	// ambiguous or rounded twice. avg of integers and decimals is the total as DOUBLE divided by the count as DOUBLE,
	// each rounded once, as in FINISH.
	Oracle string
	// Audit is Oracle; for appended rows, hidden columns with the row's place in the log come first.
	Audit string
	// Warnings lists parts of the query that are valid but probably unintended. check prints them.
	Warnings job.Problems

	// Sieve finds the records over which DuckDB raises an error; nil if they have to be searched for.
	Sieve *Sieve

	quick   string   // Partial as Land runs it, see quickForms
	source  []column // declared and meta columns with their DuckDB types
	outputs []output // keys and states with their DuckDB types
	answers []column // the select list with its DuckDB types
	hidden  []column // group keys that readers do not see

	landed   []landed  // positions of columns in the statement of Land, for Explain
	rows     *rowQuery // of a query without aggregation
	places   bool      // some aggregate orders by time and place in the log
	oneTopic bool
}

// output is a column of PARTIAL and how its values are written in PostgreSQL's syntax.
type output struct {
	column
	write func(value, duck string) string
}

// compiler compiles one query. The goroutine of Compile owns it.
type compiler struct {
	*engineFunctions
	session *Session
	spec    *job.Spec
	refused *refusals
	source  []column // columns of relation source, in order

	statement  tree
	node       tree // the statement's SELECT
	items      []item
	rows       *rowQuery // of a query without aggregation
	stored     []*state  // of the aggregates, if they were assigned before derive
	outer      *outer    // what is computed above the aggregation; nil: nothing
	reduced    bool      // the statement is no longer that of the query
	sets       [][]tree  // grouping sets, as expressions; nil: one set of all keys
	unselected []item    // group keys that are not in the select list
	written    []tree    // the select list of the query, if the statement was reduced to the inner one
	plain      tree      // the statement with everything written out, for Fix
	rewritten  bool      // plain differs from the query
	wantsMax   bool      // the query was refused because distinct_max is missing
	vague      bool      // the GROUP BY was refused, so it is unknown which items are keys
	plans      []tree    // the bound statement
}

// Compile compiles the query of spec, or returns job.Problems with place, cause and fix. It needs no server.
func Compile(ctx context.Context, spec *job.Spec) (_ *Compiled, err error) {
	session, err := Open(ctx, Config{Memory: compileMemory, plain: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	return compileIn(ctx, session, spec)
}

// compileIn compiles in a session.
func compileIn(ctx context.Context, session *Session, spec *job.Spec) (*Compiled, error) {
	_, out, err := compileWith(ctx, session, spec)
	return out, err
}

// compileWith is compileIn that returns the compiler too, also if the query is refused.
func compileWith(ctx context.Context, session *Session, spec *job.Spec) (_ *compiler, _ *Compiled, err error) {
	c := &compiler{session: session, spec: spec, refused: &refusals{spec: spec}, source: sourceColumns(spec.Source)}
	if len(spec.Serve.Key) > 0 {
		c.source = append(c.source, column{tombstoneColumn, "BOOLEAN"})
	}
	if c.engineFunctions, err = session.functions(ctx); err != nil {
		return c, nil, err
	}
	if err := c.createSource(ctx); err != nil {
		return c, nil, fmt.Errorf("declare the columns of source: %w", err)
	}
	compiled, err := c.compile(ctx)
	if err != nil {
		return c, nil, err
	}
	if compiled.Layout.Keep = keepOf(spec, compiled.Layout); compiled.Layout.Keep != nil {
		compiled.Layout.Keep.ByRecord = c.byRecord(compiled.Layout.Keep.Column)
	}
	compiled.Layout.Indexes = indexesOf(spec, compiled.Layout)
	c.jsonDigits()
	compiled.Warnings = c.refused.warnings
	return c, compiled, nil
}

// compile runs the stages. Each stage reports all its problems; the next one runs only if there are none.
func (c *compiler) compile(ctx context.Context) (*Compiled, error) {
	for _, stage := range []func(context.Context) error{c.parse, c.read, c.bind, c.typeForms, c.typeItems, c.typeOuter, c.judge} {
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

// prove binds the statements that will be run to the fields they will be run over.
func (c *compiler) prove(ctx context.Context, out *Compiled) error {
	if err := c.limitSource(ctx, out.Fields); err != nil {
		return fmt.Errorf("declare the fields of source: %w", err)
	}
	texts := []string{out.Oracle, out.Land()}
	if out.prelude() == "" {
		// Land defines a CTE named source, over which main.source.x does not bind. It is therefore refused in every
		// query.
		texts = append(texts, fmt.Sprintf("WITH %s AS (SELECT * FROM %[1]s) SELECT * FROM (%s)", SourceRelation, out.Partial))
	}
	for _, text := range texts {
		if _, err := c.session.columns(ctx, text); err != nil {
			cause, _, _ := strings.Cut(err.Error(), "\n")
			cure := "name every column plainly, without schema"
			if c.rows != nil && c.rows.latest() && c.rows.unnests {
				cure += "; unnest lists only, and take the fields of a STRUCT by name: t.x"
			}
			c.refused.add(0, "the query does not bind over the columns that it names: "+cause, cure)
			return nil
		}
	}
	return nil
}

// emptyTable is the table with the declared columns that relation source is a view of. At run time source is a view
// too; as a table it would offer rowid and a schema.
const emptyTable = "_kappactl_empty"

// createSource creates an empty relation with the declared types to bind against.
func (c *compiler) createSource(ctx context.Context) error {
	if err := c.session.exec(ctx, "CREATE OR REPLACE TABLE "+emptyTable+" ("+columnList(c.source)+")"); err != nil {
		return err
	}
	return c.limitSource(ctx, columnNames(c.source))
}

// limitSource redefines relation source with only these fields.
func (c *compiler) limitSource(ctx context.Context, fields []string) error {
	quoted := make([]string, len(fields))
	for i, f := range fields {
		quoted[i] = ident(f)
	}
	return c.session.exec(ctx, "CREATE OR REPLACE TEMP VIEW "+SourceRelation+" AS SELECT "+strings.Join(quoted, ", ")+
		" FROM "+emptyTable)
}

// parse parses the query and refuses anything except one SELECT without parameters.
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
		return c.nameUnnest(ctx)
	default:
		c.refused.add(firstPlace(statements[1]), "the query holds more than one statement", "write one SELECT")
		return nil
	}
}

// streamClause matches clauses of other streaming SQL dialects.
var streamClause = regexp.MustCompile(`(?i)\bEMIT\s+(CHANGES|FINAL|WITH)\b|\bWINDOW\s+(TUMBLING|HOPPING|SESSION)\b|\bTABLE\s*\(\s*(TUMBLE|HOP|CUMULATE|SESSION)\b`)

func (c *compiler) refusedParse(e *engineError) {
	if e.kind == "parser" {
		cure := "correct the SQL; the query is DuckDB's dialect"
		if streamClause.MatchString(c.spec.Query) {
			cure = "remove the window clause: the view always shows the newest totals; " + cureWindow
		}
		c.refused.add(e.at, e.message, cure)
		return
	}
	// DuckDB serializes only plain SELECT statements: PIVOT, INSERT, COPY, SET, … end here.
	c.refused.add(0, "the query is not a plain SELECT",
		"write one SELECT over source; instead of PIVOT write one aggregate per column: sum(x) FILTER (WHERE kind = 'a') AS a")
}

// read checks the structure of the tree and its select list.
func (c *compiler) read(ctx context.Context) error {
	if c.node.kind() == nodeSelect {
		if err := c.rewriteRelations(ctx); err != nil {
			return err
		}
		if err := c.nameItems(ctx, c.node.list("select_list")); err != nil {
			return err
		}
		c.plain = c.statement.clone()
		if err := c.rewriteAggregates(ctx); err != nil {
			return err
		}
	}
	if !c.shape() {
		return nil
	}
	return c.takeItems(ctx)
}

// bind lets DuckDB resolve names and types.
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
	if c.outer == nil && !c.reduced {
		return nil
	}
	text, err := c.session.write(ctx, c.statement)
	if err != nil {
		return err
	}
	if c.plans, err = c.session.plan(ctx, text); errors.As(err, &ee) {
		ee.at = -1 // a place in the statement that was made of the query
		c.refusedBind(ee)
		return nil
	}
	return err
}

// judge checks which functions the bound query calls.
func (c *compiler) judge(context.Context) error {
	for _, p := range c.plans {
		c.judgePlan(p)
	}
	return nil
}

// placeOf returns the node's own place, otherwise the first place below it.
func placeOf(t tree) int {
	if at := t.at(); at >= 0 {
		return at
	}
	return firstPlace(t)
}

// firstPlace returns the smallest known place in a node.
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
