<?php
// Sends a file of the site.
readfile('../large.bin');
