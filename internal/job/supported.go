package job

// Supported says which settings of a valid job file this release cannot honour, as Problems, or nil. Each line goes when
// its feature comes; nothing that a file asks for is ignored in silence.
func (s *Spec) Supported() error {
	var ps Problems
	later := func(path, what, cure string) {
		ps = append(ps, s.Problem(path, "", what+": not in this release", cure))
	}
	if s.Mode == Lambda {
		later("mode", "the Lambda architecture (mode: lambda)", "write mode: kappa")
	}
	switch s.Source.Format {
	case "json", "csv", "raw":
	default:
		later("source.format", "the format "+s.Source.Format, "write the records as JSON objects and format: json, or use csv or raw")
	}
	if len(ps) == 0 {
		return nil
	}
	return ps
}
