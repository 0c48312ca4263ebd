package reprocess

// SetHook calls f at every fault point of the controller.
func (c *Controller) SetHook(f func(point string)) { c.hook = f }
