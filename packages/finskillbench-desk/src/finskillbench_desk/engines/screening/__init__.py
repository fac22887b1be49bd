"""Log ratios of many companies over many quarters, for screening for managed accounts."""
