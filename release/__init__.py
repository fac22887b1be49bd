"""What a release is made of and tried by: wheel and source distribution, and a bill of materials."""
