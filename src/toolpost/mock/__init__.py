"""Kind `mock`: a scripted double of a tool server, with the same interface as the real one."""
