package reprocess

import (
	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Work holds the leased work of a Controller: it carries out deployments and answers requests.
func (c *Controller) Work() []agent.Work {
	return []agent.Work{
		{Name: "deployment", Table: "kappactl.deployment", Open: ledger.NeedsController, Eager: true, Run: c.Control},
		{Name: "request", Table: "kappactl.request", Open: ledger.NeedsAnswer, Held: ledger.NeedsAnswer, Run: c.Answer},
	}
}
