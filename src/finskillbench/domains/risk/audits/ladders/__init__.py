"""Ladders of the risk subtasks: answers to one label from right to wrong as a professional ranks them."""
