package archtest

// allowed lists, for each package of the module, which others its code may import. A package that is missing here fails
// the test: decide what it may know, then add a line.
var allowed = map[string][]string{
	"cmd/kappactl": {"internal/cli"},

	// The capability packages never import one another: what one needs of another it declares as a small interface,
	// and internal/cli joins them.
	"reprocess":  {"internal/job", "internal/pg", "internal/faultpoint"},
	"serving":    {"internal/job", "internal/pg", "internal/faultpoint"},
	"abtest":     {"internal/job", "internal/pg"},
	"speedlayer": {"internal/job", "internal/query", "internal/kafka", "internal/format", "internal/pg", "internal/faultpoint"},
	"batchlayer": {"internal/job", "internal/query", "internal/kafka", "internal/format", "internal/pg", "internal/faultpoint"},

	"internal/job":            {},
	"internal/pg":             {},
	"internal/faultpoint":     {},
	"internal/render":         {},
	"internal/archtest":       {},
	"internal/query":          {"internal/job"},
	"internal/format":         {"internal/job"},
	"internal/kafka":          {"internal/job"},
	"internal/config":         {"internal/job"},
	"internal/agent":          {"internal/job", "internal/pg"},
	"internal/httpapi":        {"internal/job", "internal/pg"},
	"internal/devstack":       {"internal/job", "internal/kafka", "internal/pg", "internal/config"},
	"internal/law":            {"internal/job", "internal/query", "internal/format", "internal/pg"},
	"internal/trial":          {"internal/job", "internal/query", "internal/format", "internal/pg", "internal/law"},
	"internal/hooks":          {"internal/job", "internal/pg"},
	"internal/sample":         {"internal/job", "internal/kafka"},
	"internal/verify":         {"internal/job", "internal/query", "internal/kafka", "internal/format", "internal/pg"},
	"internal/pgtest":         {"internal/pg", "internal/devstack", "internal/certtest"},
	"internal/kafkatest":      {"internal/job", "internal/kafka", "internal/certtest"},
	"internal/certtest":       {},
	"internal/leaktest":       {},
	"internal/tui":            {"internal/job", "internal/render", "reprocess"},
	"internal/tui/quietstart": {},
	"internal/report":         {"internal/job", "internal/render", "reprocess"},
	"internal/cli":            {"*"},
	"docs":                    {},

	// For tests only.
	"internal/e2e":         {"*"},
	"internal/testservers": {"*"},
	"scripts/pictures":     {},
}

// thirdParty limits the libraries outside the standard library for packages that must stay small.
var thirdParty = map[string][]string{
	"internal/job":            {"go.yaml.in/yaml/v3"},
	"internal/render":         {"github.com/dustin/go-humanize", "go.yaml.in/yaml/v3"},
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
	maxTestLines = 600 // tables of cases grow
	maxMainLines = 15
)

// foreign must not stand in any file of the project: places of one machine and hosts of package registries. They are
// put together here so that this file passes its own test.
var foreign = []string{
	"../" + "shared", "/work/" + "main", "/work/" + "shared",
	"registry." + "npmjs.org", "proxy." + "golang.org", "sum." + "golang.org", "repo1." + "maven.org",
	"repo.maven." + "apache.org", "pypi" + ".org", "deb." + "debian.org",
}
