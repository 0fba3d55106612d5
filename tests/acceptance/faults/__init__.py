"""Faults of every kind, on a real server: crashes, disks, clocks, providers and clients."""
