package serving

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// Contract holds the promises to readers of a serving view, as kept in kappactl.job.contract.
type Contract struct {
	Columns []Column `json:"columns"`
	Options []string `json:"options,omitempty"` // name=value
	Owner   string   `json:"owner"`
	Grants  []Grant  `json:"grants,omitempty"`
	Comment string   `json:"comment,omitempty"`
	// Spec holds the grants of the job file that were made once: a person may take one back.
	Spec []Grant `json:"spec,omitempty"`
	// Stood are those of Spec that stood before the job file named them: they outlive their place in it.
	Stood []Grant `json:"stood,omitempty"`
	// Readers are the roles that the live version's table was opened to, of a view that checks the rights of its readers.
	Readers []string `json:"readers,omitempty"`
}

// Column is one column of a view.
type Column struct {
	Name      string `json:"name"`
	Type      string `json:"type"`                // as format_type prints it, with length or precision
	Collation string `json:"collation,omitempty"` // schema-qualified and quoted; empty for types without one
	// Lacking marks a column that the live version does not have: it is served as NULL.
	Lacking bool `json:"lacking,omitempty" db:"-"`
}

// Grant is a right on a view that another role than its owner has. An empty Role is PUBLIC.
type Grant struct {
	Privilege string `json:"privilege"`
	Role      string `json:"role"`
	Grantable bool   `json:"grantable,omitempty"`
	OnColumn  string `json:"column,omitempty"`
}

func parseContract(text []byte) (*Contract, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	var c Contract
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("read the view's contract: %w", err)
	}
	return &c, nil
}

// Check says whether the candidate can take over the view: every column that readers have must be there with the same
// type, and a new one needs allow. The types of computed columns are judged by Create, which has a database.
func (*Store) Check(contract json.RawMessage, candidate job.Layout, allow bool) error {
	c, err := parseContract(contract)
	if err != nil || c == nil {
		return err
	}
	columns := make([]Column, len(candidate.View))
	for i, v := range candidate.View {
		columns[i] = Column{Name: v.Name, Type: v.Type}
		if v.Computed {
			columns[i].Type = ""
		}
	}
	return c.fits(columns, allow)
}

// fits compares by name; an empty type of a candidate's column is not compared.
func (c *Contract) fits(candidate []Column, allow bool) error {
	have := map[string]Column{}
	for _, v := range candidate {
		have[v.Name] = v
	}
	var broken []string
	known := map[string]bool{}
	for _, want := range c.Columns {
		known[want.Name] = true
		got, found := have[want.Name]
		switch {
		case !found && !want.Lacking:
			broken = append(broken, fmt.Sprintf("column %q (%s) would be removed", want.Name, want.Type))
		case found && got.Type != "" && got.Type != want.Type:
			broken = append(broken, fmt.Sprintf("column %q would change from %s to %s", want.Name, want.Type, got.Type))
		}
	}
	if len(broken) > 0 {
		return &job.Refusal{
			Code:  job.ExitConflict,
			Cause: "the serving view cannot change under its readers: " + strings.Join(broken, "; "),
			Next:  "keep these columns and their types (a cast in query repairs a type), or use a new view: another job name and serve.view",
		}
	}
	var added []string
	for _, v := range candidate {
		if !known[v.Name] {
			added = append(added, fmt.Sprintf("%q", v.Name))
		}
	}
	if len(added) > 0 && !allow {
		return &job.Refusal{
			Code: job.ExitConflict,
			Cause: fmt.Sprintf("the serving view would get new columns: %s; clients that prepared SELECT * on it fail once with %q",
				strings.Join(added, ", "), "cached plan must not change result type"),
			Next: "deploy again with --allow-column-change",
		}
	}
	return nil
}
