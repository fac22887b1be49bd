"""Skill packages: read, linted, written by an agent, kept between episodes."""
