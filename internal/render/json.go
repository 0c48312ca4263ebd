package render

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON prints v as indented, strict JSON with a newline. A NaN or an infinity is an error, never text.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
