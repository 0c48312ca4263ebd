package archtest

// allowed lists, for each package of the module, which others its code may import. A package that is missing here fails
// the test: decide what it may know, then add a line.
var allowed = map[string][]string{
	"cmd/kappactl": {"internal/cli"},

	// The capability packages never import one another: what one needs of another it declares as an interface of its own,
	// and internal/cli joins them.
	// reprocess describes its work for the agent.
	"reprocess": {
		"internal/job", "internal/pg", "internal/agent", "internal/faultpoint", "internal/reason", "reprocess/ledger", "reprocess/checks",
		"reprocess/plan", "reprocess/readiness", "reprocess/sampling", "reprocess/status", "internal/retry", "batchlayer/generation", "reprocess/engine",
	},
	"serving": {"internal/job", "internal/pg", "internal/faultpoint", "internal/reach"},
	"abtest": {
		"internal/job", "internal/pg", "internal/agent", "internal/reason", "internal/retry", "reprocess/ledger", "reprocess/checks",
	},
	"speedlayer": {
		"internal/job", "internal/query", "internal/kafka", "internal/format", "internal/pg", "internal/faultpoint", "internal/retry", "internal/archive",
		"internal/gather", "internal/reason", "internal/typed",
	},
	"batchlayer": {
		"internal/job", "internal/query", "internal/kafka", "internal/format", "internal/pg", "internal/faultpoint", "internal/archive",
		"internal/agent", "internal/retry", "internal/reason", "batchlayer/generation", "reprocess/ledger", "reprocess/checks",
		"reprocess/readiness", "internal/typed",
	},
	"batchlayer/generation": {"internal/job", "internal/pg", "internal/reason"},

	"batchlayer/schedule": {"internal/job", "internal/pg", "internal/reason", "internal/retry", "reprocess/ledger"},

	// The parts of reprocess, from the bottom: none imports the package above it.
	"reprocess/engine":    {"internal/job", "internal/pg"},
	"reprocess/ledger":    {"internal/job", "internal/pg", "internal/reason", "reprocess/readiness"},
	"reprocess/readiness": {"internal/job", "internal/reason"},
	"reprocess/status":    {"internal/job", "internal/pg", "internal/reason", "reprocess/ledger", "reprocess/readiness", "reprocess/checks"},
	"reprocess/plan":      {"internal/job", "internal/pg", "internal/reason", "reprocess/ledger", "reprocess/readiness"},
	"reprocess/sampling": {
		"internal/gather", "internal/job", "internal/pg", "internal/reason", "reprocess/engine", "reprocess/ledger", "reprocess/plan", "reprocess/readiness",
	},
	"reprocess/checks": {"internal/job", "internal/pg", "internal/reason", "internal/reach", "reprocess/ledger"},

	"internal/job":            {},
	"internal/pg":             {},
	"internal/reach":          {"internal/pg"},
	"internal/reason":         {"internal/job"},
	"internal/faultpoint":     {},
	"internal/retry":          {},
	"internal/programs":       {"internal/agent", "internal/job", "internal/pg", "internal/reason", "internal/retry"},
	"internal/render":         {"internal/job"},
	"internal/archtest":       {},
	"internal/query":          {"internal/job"},
	"internal/format":         {"internal/job"},
	"internal/kafka":          {"internal/job", "internal/retry"},
	"internal/archive":        {"internal/job", "internal/kafka", "internal/pg", "internal/faultpoint", "internal/retry"},
	"internal/typed":          {"internal/archive", "internal/format", "internal/job", "internal/kafka", "internal/pg"},
	"internal/config":         {"internal/job", "internal/yamledit"},
	"internal/yamledit":       {},
	"internal/gather":         {"internal/pg", "internal/retry"},
	"internal/agent":          {"internal/job", "internal/pg", "internal/retry"},
	"internal/httpapi":        {"internal/job", "internal/pg"},
	"internal/abhttp":         {"abtest", "internal/job", "internal/pg"},
	"internal/devstack":       {"internal/job", "internal/kafka", "internal/pg", "internal/config", "internal/retry"},
	"internal/mergecheck":     {"internal/job", "internal/query", "internal/format", "internal/pg", "internal/reach"},
	"internal/trial":          {"internal/job", "internal/query", "internal/format", "internal/pg", "internal/mergecheck"},
	"internal/scaffold":       {"internal/job", "internal/format", "internal/query", "internal/trial"},
	"internal/hooks":          {"internal/job", "internal/pg", "internal/reason", "internal/retry"},
	"internal/sample":         {"internal/job", "internal/kafka"},
	"internal/estimate":       {"internal/job", "internal/kafka", "internal/mergecheck", "internal/query", "internal/render", "internal/sample", "reprocess/plan"},
	"internal/spill":          {"internal/render"},
	"internal/lookup":         {"internal/job", "internal/pg"},
	"internal/verify":         {"internal/job", "internal/query", "internal/kafka", "internal/format", "internal/pg", "internal/archive"},
	"internal/pgtest":         {"internal/pg", "internal/devstack", "internal/certtest"},
	"internal/kafkatest":      {"internal/job", "internal/kafka", "internal/certtest"},
	"internal/archivetest":    {"internal/archive", "internal/job", "internal/kafka", "internal/kafkatest", "internal/pg"},
	"internal/s3test":         {"internal/archive"},
	"internal/certtest":       {},
	"internal/leaktest":       {},
	"internal/follow":         {"internal/job", "internal/reason", "internal/render", "reprocess/ledger", "reprocess/status", "reprocess/checks"},
	"internal/tui":            {"abtest", "batchlayer", "batchlayer/generation", "batchlayer/schedule", "internal/job", "internal/reason", "internal/render", "reprocess/ledger", "reprocess/status", "reprocess/checks"},
	"internal/tui/quietstart": {},
	"internal/report":         {"abtest", "batchlayer", "batchlayer/generation", "internal/job", "internal/reason", "internal/render", "reprocess/ledger", "reprocess/status", "reprocess/checks"},
	"internal/doctor": {
		"internal/agent", "internal/archive", "internal/compare", "internal/config", "internal/hooks", "internal/job", "internal/kafka", "internal/pg",
		"internal/render", "reprocess/ledger", "reprocess/plan", "reprocess/status",
	},
	"internal/compare":        {"internal/job", "internal/pg", "internal/render", "internal/yamledit"},
	"internal/cli":            {"*"},
	"docs":                    {},
	"examples/programs/pages": {}, // what users write: no package of ours

	// For tests only.
	"internal/e2e":         {"*"},
	"internal/testservers": {"*"},
	"scripts/kubernetes":   {},
	"scripts/pictures":     {},
}

// thirdParty limits the libraries outside the standard library for packages that must stay small.
var thirdParty = map[string][]string{
	"internal/job":            {"github.com/theory/jsonpath", "github.com/theory/jsonpath/spec", "go.yaml.in/yaml/v3"},
	"internal/reason":         {"github.com/dustin/go-humanize"},
	"reprocess/readiness":     {}, // decisions only: no database, no broker
	"internal/render":         {"github.com/charmbracelet/x/ansi", "github.com/dustin/go-humanize", "go.yaml.in/yaml/v3"},
	"internal/tui/quietstart": {}, // it must be initialised before all of them
}

// pureFiles hold decisions only: they are tested as tables and reach neither a database nor a broker.
var pureFiles = []string{
	"phase.go", "plan.go", "verdict.go", "coverage.go", "schedule.go", "segments.go", "policy.go", "transitions.go",
}

// io are the imports that a pure file must not have.
var io = []string{
	"github.com/jackc/pgx", "github.com/twmb/franz-go", "internal/pg", "internal/kafka", "database/sql", "net",
}

// badNames say nothing about what is inside.
var badNames = []string{"util", "utils", "common", "helper", "helpers", "types", "shared", "misc"}

const (
	maxLines     = 400
	maxPartLines = 4000 // of production code in reprocess or one of its parts
	maxTestLines = 600  // tables of cases grow
	maxMainLines = 15
)

// foreign must not stand in any file of the project: places of one machine and hosts of package registries. They are
// put together here so that this file passes its own test.
var foreign = []string{
	"../" + "shared", "/work/" + "main", "/work/" + "shared",
	"registry." + "npmjs.org", "proxy." + "golang.org", "sum." + "golang.org", "repo1." + "maven.org",
	"repo.maven." + "apache.org", "pypi" + ".org", "deb." + "debian.org",
}
