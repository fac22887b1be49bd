"""The sessions of the fictional market against a calendar library."""

import exchange_calendars

from finskillbench.sources.synthetic.calendar import FIRST_SESSION, LAST_SESSION, sessions


def test_sessions_are_those_of_the_new_york_stock_exchange() -> None:
    calendar = exchange_calendars.get_calendar("XNYS", start="2015-12-01", end=LAST_SESSION.isoformat())
    known = calendar.sessions_in_range(FIRST_SESSION.isoformat(), LAST_SESSION.isoformat())
    assert sessions() == tuple(day.date() for day in known)
