"""Guests: agents that are WebAssembly components, confined to what they were granted. The extra `wasm`."""
