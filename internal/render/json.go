package render

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes v as indented, strict JSON with a newline. NaN and infinities are an error.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
