"""Reports: the document of an audit, in the formats people read and machines parse."""
