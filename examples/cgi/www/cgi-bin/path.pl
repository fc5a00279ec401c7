#!/usr/bin/perl
use strict;
use warnings;

print "Content-Type: text/plain\r\n\r\n";
print "You are at ", $ENV{PATH_INFO} // "/", "\n";
